// The gate before every handler: request id, headers of every answer, who asks, how often, and whether they may (spec 5.8, D2, D17, D-14).
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#base/clock.ts";
import { networkOf } from "#base/network.ts";
import { withRequestId, withRequestIdAtOnce } from "#base/request-scope.ts";
import { VERSION } from "#base/version.ts";
import { type ClientFacts, clientFacts, type TrustedProxies } from "./client-address.ts";
import { type Credential, takeCredential } from "./credentials.ts";
import type { OperatorSessions } from "./operator-sessions.ts";
import { changesState, senderOf } from "./own-origin.ts";
import { type App, ProblemError, type RouteAuth, type Viewer } from "./route.ts";
import { type RequestRate, TokenBuckets } from "./token-bucket.ts";

/** What the gate needs. */
export interface GuardDeps {
  readonly sessions: OperatorSessions;
  readonly proxies: TrustedProxies;
  readonly clock: Clock;
  /** False switches the third place of spec 4.2 off (T12). */
  readonly allowQueryToken: boolean;
  readonly rates: { readonly visitor: RequestRate; readonly operator: RequestRate };
  /** What every answer carries; for `/api/` see `headersOf`. */
  readonly securityHeaders: Readonly<Record<string, string>>;
  /** Told of each request that carries its token in its query. */
  readonly onQueryToken: () => void;
}

/** Paths below which everything is for operators, whether or not there is a route yet (spec 4.1). */
const OPERATOR_PATHS: readonly string[] = [
  "/api/actions/",
  "/api/rollouts",
  "/api/logs/",
  "/api/users",
  "/api/audit",
  "/api/silences",
  "/api/notices",
];

/** What the gate makes of a path, worked out once for each route. */
interface PathRules {
  readonly isForOperators: boolean;
  /** Counts against the caller's rate. */
  readonly isCounted: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Set by the gate when a route is registered. */
    rules?: PathRules;
  }
  interface FastifyRequest {
    /** Set before any handler runs; read it through `factsOf`. */
    client: ClientFacts | undefined;
    credential: Credential | undefined;
  }
}

/** Where the request comes from. */
export function factsOf(request: FastifyRequest): ClientFacts {
  if (request.client === undefined) throw new TypeError("nobody has looked yet where the request comes from");
  return request.client;
}

/** True when the page behind the request is not ours, or, where `needsProof`, cannot be shown to be. For requests that a cookie speaks for. */
export function isForeign(request: FastifyRequest, needsProof: boolean): boolean {
  const sender = senderOf(request.headers, factsOf(request).isSecure);
  return sender === "foreign" || (sender === "untold" && needsProof);
}

/** Puts the gate before every route of the application, also before paths that have none. */
export function addGuard(app: App, deps: GuardDeps): void {
  const buckets = {
    visitor: new TokenBuckets(deps.clock, deps.rates.visitor),
    operator: new TokenBuckets(deps.clock, deps.rates.operator),
  };
  app.decorateRequest("viewer", undefined);
  app.decorateRequest("client", undefined);
  app.decorateRequest("credential", undefined);
  app.addHook("onRoute", (route) => {
    const auth = route.config?.auth;
    if (auth === undefined) {
      throw new TypeError(`the route ${String(route.method)} ${route.url} does not say who may call it`);
    }
    if (auth === "public" && isOperatorPath(route.url)) {
      throw new TypeError(
        `the route ${String(route.method)} ${route.url} lies where only operators may look`,
      );
    }
    route.config = { ...route.config, auth, rules: rulesOf(route.url, auth, deps.securityHeaders) };
  });
  const guard = (request: FastifyRequest, reply: FastifyReply): void => {
    const rules =
      request.routeOptions.config?.rules ?? rulesOf(pathOf(request), undefined, deps.securityHeaders);
    reply.header("x-request-id", request.id);
    reply.headers(rules.headers);
    requireOneHost(request);
    request.client = clientFacts(request.raw, deps.proxies);
    request.credential = takeCredential(request, deps.allowQueryToken);
    if (request.credential?.from === "query") deps.onQueryToken();
    request.viewer = lookWho(request.client, request.credential, deps.sessions);
    if (rules.isCounted) limit(request.viewer, buckets);
    admit(request, rules);
  };
  // Without a promise for each request: nothing is waited for.
  app.addHook("onRequest", (request, reply, done) => {
    try {
      withRequestIdAtOnce(request.id, () => guard(request, reply));
    } catch (error) {
      withRequestId(request.id, () => done(error as Error));
      return;
    }
    withRequestId(request.id, done);
  });
  // Events of a body that is still arriving do not belong to the scope above.
  app.addHook("preValidation", (request, _reply, done) => {
    if (request.body === undefined) done();
    else withRequestId(request.id, done);
  });
}

/** The gate's rules for a path: the pattern of a route, or what was asked for where there is none. */
function rulesOf(
  path: string,
  auth: RouteAuth | undefined,
  securityHeaders: Readonly<Record<string, string>>,
): PathRules {
  return {
    isForOperators: auth === "operator" || isOperatorPath(path),
    // Whoever opens a WebSocket is sent the whole cluster: that counts like asking for it.
    isCounted: /^\/(?:api|ws)\//.test(path),
    headers: headersOf(path, securityHeaders),
  };
}

/** Which host was asked decides what is a page of ours: two answers to that are none (RFC 9112, 3.2). HTTP/1.0 may leave it out. */
function requireOneHost({ raw }: FastifyRequest): void {
  let count = 0;
  for (let at = 0; at < raw.rawHeaders.length; at += 2) {
    const name = raw.rawHeaders[at] ?? "";
    if (name.length === 4 && name.toLowerCase() === "host") count++;
  }
  if (count > 1 || (count === 0 && raw.httpVersion !== "1.0")) {
    throw new ProblemError("BAD_REQUEST", "a request names one Host");
  }
}

function isOperatorPath(path: string): boolean {
  return OPERATOR_PATHS.some(
    (prefix) => path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`),
  );
}

/** Of the security headers those that mean nothing for JSON are left to the pages: they would be a third of a short answer. */
const FOR_PAGES_ONLY: ReadonlySet<string> = new Set([
  "cross-origin-opener-policy",
  "origin-agent-cluster",
  "x-dns-prefetch-control",
  "x-download-options",
  "x-permitted-cross-domain-policies",
  "x-xss-protection",
]);

function headersOf(
  path: string,
  securityHeaders: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const headers = { ...securityHeaders, "x-svc-version": VERSION };
  if (!path.startsWith("/api/")) return headers;
  return {
    ...Object.fromEntries(Object.entries(headers).filter(([name]) => !FOR_PAGES_ONLY.has(name))),
    // A kept copy of what an operator saw, shown to a visitor, is the classic leak (D-14).
    "cache-control": "no-store",
    vary: "Cookie, Authorization",
  };
}

function lookWho(facts: ClientFacts, credential: Credential | undefined, sessions: OperatorSessions): Viewer {
  const session = credential === undefined ? undefined : sessions.byToken(credential.token);
  return session === undefined
    ? { kind: "visitor", address: facts.address }
    : { kind: "operator", address: facts.address, session };
}

function limit(viewer: Viewer, buckets: Record<"visitor" | "operator", TokenBuckets>): void {
  const waitMs =
    viewer.kind === "operator"
      ? buckets.operator.take(viewer.session.id)
      : buckets.visitor.take(networkOf(viewer.address));
  if (waitMs === 0) return;
  throw new ProblemError("RATE_LIMITED", "too many requests; wait a little", {
    retryAfterSeconds: waitMs / 1_000,
  });
}

function admit(request: FastifyRequest, { isForOperators }: PathRules): void {
  const isOperator = request.viewer?.kind === "operator";
  if (isForOperators && !isOperator) {
    throw new ProblemError("AUTH_REQUIRED", "sign in as an operator first: POST /api/auth/login");
  }
  // Only what a browser adds by itself can be used by other people's pages.
  if (
    isOperator &&
    request.credential?.from === "cookie" &&
    changesState(request.method) &&
    isForeign(request, true)
  ) {
    throw new ProblemError(
      "ORIGIN_REJECTED",
      "a request that changes something must come from a page of this console",
    );
  }
}

/** The pattern of the route, however its path was written (`/%61pi/…` is one of ours too); without one the path without its query. */
function pathOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? request.url.split("?", 1)[0] ?? "";
}
