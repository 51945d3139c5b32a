// The OAuth 2.0 authorization code flow with PKCE: consent address and code exchange (spec 5.1).

import type * as OAuth from "oauth4webapi";
import { systemClock } from "#base/clock.ts";
import { IDP_TIMEOUT_MS } from "#base/limits.ts";
import type { Random } from "#base/random.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import type { Fetch } from "#os/authority-fetch.ts";
import { createNonce, createPkce, createState, type Pkce } from "#security/identity/pkce.ts";
import { readClaims } from "./id-token.ts";
import type { IdpProfile } from "./profile.ts";
import { isUntrusted, NAME_THE_AUTHORITY } from "./provider-trust.ts";

/** Seconds since the person last proved themselves to the provider, at most. */
const SIGN_IN_MAX_AGE_S = 300;

/** One sign-in that has been started. */
export interface SignInStart {
  readonly consentUrl: string;
  readonly state: string;
  /** Exchanges the code in the redirect's address for an ID token. Rejects with SIGN_IN_FAILED. */
  readonly exchange: (callback: URL) => Promise<string>;
}

/** Dependencies of a sign-in. */
export interface SignInDeps {
  readonly idp: IdpProfile;
  readonly clientSecret: string | undefined;
  readonly redirectUri: string;
  /** Sends requests to the provider and verifies its certificate. */
  readonly fetch: Fetch;
  readonly random: Random;
  readonly signal: AbortSignal;
}

interface Flow extends SignInDeps {
  readonly oauth: typeof OAuth;
  readonly server: OAuth.AuthorizationServer;
  readonly client: OAuth.Client;
  readonly pkce: Pkce;
  readonly state: string;
  readonly nonce: string;
}

/** Makes verifier, state and nonce, and the address to open in the browser. Rejects with SIGN_IN_FAILED. */
export async function startSignIn(deps: SignInDeps): Promise<SignInStart> {
  const clientId = deps.idp.clientId;
  if (clientId === undefined) {
    throw new ClientError(
      "SIGN_IN_FAILED",
      "it is not known as which client to sign in at the identity provider",
      {
        todo: "Sign in with the cluster's file (grove login --cluster FILE), or set IDP_CLIENT_ID.",
      },
    );
  }
  const oauth = await import("oauth4webapi");
  const server = await findServer(oauth, deps);
  const pkce = createPkce(deps.random);
  const state = createState(deps.random);
  const nonce = createNonce(deps.random);
  const flow: Flow = { ...deps, oauth, server, client: { client_id: clientId }, pkce, state, nonce };
  const url = new URL(server.authorization_endpoint ?? "");
  const parameters = {
    client_id: clientId,
    redirect_uri: deps.redirectUri,
    response_type: "code",
    scope: "openid email profile",
    code_challenge: pkce.challenge,
    code_challenge_method: pkce.method,
    state,
    nonce,
    // Where the provider's own session is older it asks anew, since some calls need a recent sign-in.
    max_age: String(SIGN_IN_MAX_AGE_S),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return { consentUrl: url.href, state, exchange: (callback) => exchange(flow, callback) };
}

/** The provider's endpoints: the configured ones, else those that its issuer publishes. */
async function findServer(oauth: typeof OAuth, deps: SignInDeps): Promise<OAuth.AuthorizationServer> {
  const { issuer, authUrl, tokenUrl } = deps.idp;
  if (authUrl !== undefined && tokenUrl !== undefined) {
    requireSafe("IDP_AUTH_URL", authUrl);
    requireSafe("IDP_TOKEN_URL", tokenUrl);
    return { issuer: issuer ?? "", authorization_endpoint: authUrl, token_endpoint: tokenUrl };
  }
  if (issuer === undefined) {
    throw new ClientError("SIGN_IN_FAILED", "it is not known where to sign in", {
      todo: "Sign in with the cluster's file (grove login --cluster FILE), or set IDP_ISSUER, or IDP_AUTH_URL and IDP_TOKEN_URL.",
    });
  }
  const url = requireSafe("IDP_ISSUER", issuer);
  try {
    const response = await oauth.discoveryRequest(url, requestOptions(oauth, deps, url));
    const server = await oauth.processDiscoveryResponse(url, response);
    requireSafe("the provider's authorization_endpoint", server.authorization_endpoint ?? "");
    requireSafe("the provider's token_endpoint", server.token_endpoint ?? "");
    return server;
  } catch (error) {
    throw failed("the identity provider's addresses could not be had", error);
  }
}

async function exchange(flow: Flow, callback: URL): Promise<string> {
  const { oauth, client } = flow;
  try {
    // Configured addresses come without an issuer to compare with; all other checks stay.
    const server = flow.server.issuer === "" ? withIssuer(flow.server, callback) : flow.server;
    const parameters = oauth.validateAuthResponse(server, client, callback, flow.state);
    const tokenUrl = requireSafe("the token address", server.token_endpoint ?? "");
    const authentication =
      flow.clientSecret === undefined ? oauth.None() : oauth.ClientSecretPost(flow.clientSecret);
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      authentication,
      parameters,
      flow.redirectUri,
      flow.pkce.verifier,
      requestOptions(oauth, flow, tokenUrl),
    );
    const checked = flow.server.issuer === "" ? await withIssuerOf(response, server) : server;
    const tokens = await oauth.processAuthorizationCodeResponse(checked, client, response, {
      expectedNonce: flow.nonce,
      requireIdToken: true,
    });
    if (tokens.id_token === undefined) throw new Error("the provider sent no ID token");
    return tokens.id_token;
  } catch (error) {
    throw failed("the identity provider did not sign you in", error);
  }
}

function withIssuer(server: OAuth.AuthorizationServer, callback: URL): OAuth.AuthorizationServer {
  const issuer = callback.searchParams.get("iss") ?? new URL(server.token_endpoint ?? "").origin;
  return { ...server, issuer };
}

/**
 * Takes the issuer of the token where only addresses are configured. The servers of the cluster decide
 * whether they accept it.
 */
async function withIssuerOf(
  response: Response,
  server: OAuth.AuthorizationServer,
): Promise<OAuth.AuthorizationServer> {
  const body = (await response.clone().json()) as { id_token?: unknown };
  const issuer = typeof body.id_token === "string" ? readClaims(body.id_token).issuer : undefined;
  return { ...server, issuer: issuer ?? "" };
}

function requestOptions(
  oauth: typeof OAuth,
  deps: Pick<SignInDeps, "fetch" | "signal">,
  url: URL,
): { signal: AbortSignal } {
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(IDP_TIMEOUT_MS)]);
  const options = { signal, [oauth.customFetch]: deps.fetch };
  if (url.protocol !== "http:") return options;
  // Plain HTTP only to this machine, which requireSafe has checked: that is the demonstration's provider.
  // oxlint-disable-next-line typescript/no-deprecated
  return Object.assign(options, { [oauth.allowInsecureRequests]: true });
}

/** Requires TLS or loopback for addresses that get the code, the secret and the tokens. */
function requireSafe(name: string, text: string): URL {
  const url = URL.parse(text);
  const isLocal = url !== null && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLocal)) return url;
  throw new ClientError("SIGN_IN_FAILED", `${name} is not an https address`);
}

/** The library's messages name what was wrong and never a token. */
function failed(what: string, error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  const detail = error instanceof Error ? error.message : "";
  const { code } = error as { code?: unknown };
  const cause = error as { error?: unknown; error_description?: unknown; cause?: { code?: unknown } };
  const said = [cause.error, cause.error_description, cause.cause?.code].filter(
    (text) => typeof text === "string",
  );
  return new ClientError("SIGN_IN_FAILED", `${what}: ${said.length > 0 ? said.join(", ") : detail}`, {
    cause: error,
    ...todoOf(error, code),
  });
}

/** The hint for failures where another attempt does not help. */
function todoOf(error: unknown, code: unknown): { readonly todo?: string } {
  if (isUntrusted(error)) return { todo: NAME_THE_AUTHORITY };
  // The library's code for a token that is expired, or not yet valid, by this machine's clock.
  if (code === "OAUTH_JWT_TIMESTAMP_CHECK_FAILED") {
    return {
      todo: `Set this machine's clock, which says ${localTime(systemClock.wallMs())}: by it, the sign-in of a moment ago is over, or has not begun.`,
    };
  }
  return {};
}
