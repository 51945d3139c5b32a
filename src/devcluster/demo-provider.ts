// The demonstration's identity provider: a real OpenID provider with a few users on a loopback port.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import { createProvider, type ProviderLibrary } from "./provider-library.ts";
import { ProviderMemory } from "./provider-memory.ts";
import { AUTH_PATH, SIGN_IN_PATH, TOKEN_PATH, TOKENINFO_PATH } from "./provider-paths.ts";
import { type DemoUser, issuerOf, type ProviderSettings, subjectOf } from "./provider-settings.ts";
import { messagePage } from "./sign-in-page.ts";
import { SESSION_COOKIE, sendPage, signInRoutes } from "./sign-in-routes.ts";
import { tokeninfo } from "./tokeninfo.ts";

const HOUR_SECONDS = 3_600;

/** Dependencies of the provider. */
export interface DemoProviderDeps {
  readonly settings: ProviderSettings;
  /** Its address where that is another than plain HTTP on the loopback. */
  readonly issuer?: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Makes the HTTP server of the provider; the caller listens on 127.0.0.1 and the port of the settings. */
export function createDemoProvider(deps: DemoProviderDeps): Server {
  const { settings, clock, log } = deps;
  const { issuer = issuerOf(settings.port) } = deps;
  const provider = createProvider(issuer, librarySettings(settings, clock));
  for (const event of ["server_error", "authorization.error", "grant.error"]) {
    provider.on(event, (_context, error) =>
      log[event === "server_error" ? "error" : "info"]("sign_in_failed", { error: errorText(error) }),
    );
  }
  const handle = routes(provider, deps, issuer);
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, (request, response) => {
    handle(request, response).catch((error: unknown) => {
      log.error("request_failed", { error: errorText(error) });
      if (!response.headersSent)
        sendPage(response, 500, messagePage("Something went wrong", "Please try again."));
      else response.destroy();
    });
  });
  return server;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

function routes(provider: ProviderLibrary, deps: DemoProviderDeps, issuer: string): Handler {
  const { settings, clock } = deps;
  const protocol = provider.callback();
  const signIn = signInRoutes({ provider, users: settings.users, clock });
  const describe = tokeninfo({ issuer, signingKey: settings.signingKey, nowMs: () => clock.wallMs() });
  return async (request, response) => {
    const url = URL.parse(request.url ?? "/", issuer);
    if (url?.pathname.startsWith(SIGN_IN_PATH)) return signIn(request, response);
    if (url?.pathname !== TOKENINFO_PATH) return protocol(request, response);
    const { status, body } = describe(url.searchParams.get("id_token") ?? "");
    response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
    response.end(JSON.stringify(body));
  };
}

function librarySettings(settings: ProviderSettings, clock: Clock): Readonly<Record<string, unknown>> {
  const memory = new ProviderMemory(clock);
  const accounts = new Map(settings.users.map((user) => [subjectOf(user.email), accountOf(user)]));
  return {
    adapter: (kind: string) => memory.adapterFor(kind),
    clients: [settings, ...(settings.door === undefined ? [] : [settings.door])].map(
      ({ clientId, redirectUris }) => ({
        client_id: clientId,
        client_name: "Grove",
        application_type: "native",
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code"],
        response_types: ["code"],
        redirect_uris: redirectUris,
      }),
    ),
    jwks: { keys: [settings.signingKey] },
    cookies: { keys: [settings.cookieKey], names: { session: SESSION_COOKIE } },
    findAccount: (_context: unknown, id: string) => accounts.get(id),
    scopes: ["openid", "email", "profile"],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    // The FileServer reads the e-mail address from the ID token and needs no other endpoint.
    conformIdTokenClaims: false,
    responseTypes: ["code"],
    pkce: { required: () => true },
    routes: { authorization: AUTH_PATH, token: TOKEN_PATH },
    interactions: {
      url: (_context: unknown, interaction: { uid: string }) => SIGN_IN_PATH + interaction.uid,
    },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    clientBasedCORS: () => false,
    ttl: {
      IdToken: HOUR_SECONDS,
      AccessToken: HOUR_SECONDS,
      AuthorizationCode: 60,
      Interaction: HOUR_SECONDS,
      Session: 12 * HOUR_SECONDS,
      Grant: 12 * HOUR_SECONDS,
    },
    renderError: (
      context: { type: string; body: string; set(name: string, value: string): void },
      out: ErrorOut,
    ) => {
      context.type = "html";
      context.body = messagePage("That did not work", `${out.error}: ${out.error_description ?? ""}`);
    },
  };
}

interface ErrorOut {
  readonly error: string;
  readonly error_description?: string;
}

function accountOf(user: DemoUser): { accountId: string; claims(): Readonly<Record<string, unknown>> } {
  const { email, name } = user;
  const sub = subjectOf(email);
  return { accountId: sub, claims: () => ({ sub, email, email_verified: true, name }) };
}
