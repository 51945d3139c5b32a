// The OAuth 2.0 authorization code flow with PKCE for a server's own pages: consent address, and exchange of
// the code for an ID token.
import * as oauth from "oauth4webapi";
import { isGroveError } from "#base/errors.ts";
import { TOKEN_CLOCK_LENIENCY_MS } from "#base/limits.ts";
import type { Random } from "#base/random.ts";
import type { CodeFlow, CodeFlowDeps, FlowSecrets } from "./code-flow-types.ts";
import { ISSUER_KEYS_TTL_MS } from "./issuer-keys.ts";
import { createNonce, createPkce, createState, pkceChallenge } from "./pkce.ts";
import { discoverProvider, type ProviderOptions, providerOptions } from "./provider-discovery.ts";

/** Makes the flow for one client of one issuer. */
export function createCodeFlow(deps: CodeFlowDeps): CodeFlow {
  const options = providerOptions(deps, () => true);
  let found: { readonly server: Promise<oauth.AuthorizationServer>; readonly untilMs: number } | undefined;
  /** Repeated sign-ins do not repeat discovery. */
  const discovered = (): Promise<oauth.AuthorizationServer> => {
    if (found !== undefined && deps.clock.steadyMs() < found.untilMs) return found.server;
    const server = discoverProvider(deps.issuer, options, (one) =>
      one.authorization_endpoint === undefined || one.token_endpoint === undefined
        ? "addresses to sign in at"
        : undefined,
    );
    found = { server, untilMs: deps.clock.steadyMs() + ISSUER_KEYS_TTL_MS };
    server.catch(() => {
      found = undefined;
    });
    return server;
  };
  return {
    async begin() {
      const server = await discovered();
      const secrets = newSecrets(deps.random);
      const url = new URL(server.authorization_endpoint ?? "");
      const parameters = {
        client_id: deps.clientId,
        redirect_uri: deps.redirectUri,
        response_type: "code",
        scope: "openid email profile",
        code_challenge: pkceChallenge(secrets.verifier),
        code_challenge_method: "S256",
        state: secrets.state,
        nonce: secrets.nonce,
        ...(deps.maxAgeSeconds === undefined ? {} : { max_age: String(deps.maxAgeSeconds) }),
      };
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      return { url: url.href, secrets };
    },
    async finish(callback, secrets) {
      const server = await discovered();
      return exchange(deps, { server, options, callback, secrets });
    },
  };
}

function newSecrets(random: Random): FlowSecrets {
  return { state: createState(random), nonce: createNonce(random), verifier: createPkce(random).verifier };
}

/** The ID token of a code, or undefined when no user was signed in. Throws IDP_UNAVAILABLE. */
async function exchange(
  deps: CodeFlowDeps,
  at: {
    readonly server: oauth.AuthorizationServer;
    readonly options: ProviderOptions;
    readonly callback: URL;
    readonly secrets: FlowSecrets;
  },
): Promise<string | undefined> {
  const { server, options, callback, secrets } = at;
  const client: oauth.Client = {
    client_id: deps.clientId,
    [oauth.clockSkew]: Math.round((deps.clock.wallMs() - Date.now()) / 1_000),
    [oauth.clockTolerance]: TOKEN_CLOCK_LENIENCY_MS / 1_000,
  };
  try {
    const parameters = oauth.validateAuthResponse(server, client, callback, secrets.state);
    const authentication =
      deps.clientSecret === undefined ? oauth.None() : oauth.ClientSecretPost(deps.clientSecret);
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      authentication,
      parameters,
      deps.redirectUri,
      secrets.verifier,
      options,
    );
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
      expectedNonce: secrets.nonce,
      requireIdToken: true,
    });
    return tokens.id_token;
  } catch (error) {
    if (isGroveError(error)) throw error;
    // The library's errors may hold the code or the token.
    return undefined;
  }
}
