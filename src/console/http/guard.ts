// The guard before every handler: headers, authentication, rate limits and access (spec 5.8, D2, D17, W-14).
import type { IncomingMessage } from "node:http";
import type { FastifyRequest } from "fastify";
import type { Clock } from "#base/clock.ts";
import { networkOf } from "#base/network.ts";
import { REQUEST_ID_HEADER, requestIdFrom, withRequestId, withRequestIdAtOnce } from "#base/request-scope.ts";
import { type BucketRate, TokenBuckets } from "#base/token-buckets.ts";
import { VERSION } from "#base/version.ts";
import { type ClientFacts, clientFacts, type TrustedProxies } from "#os/client-address.ts";
import { type Credential, shownCredential, takeQueryToken } from "./credentials.ts";
import { changesState, senderOf } from "./own-origin.ts";
import { type App, type OperatorSession, ProblemError, type RouteAuth, type Viewer } from "./route.ts";
import { securityHeaders } from "./security-headers.ts";

/** Looks up operators' sessions by token. */
export interface SessionLookup {
  /** Undefined for a token that is unknown, malformed or ended. */
  byToken(token: string): OperatorSession | undefined;
}

/** What the guard needs. */
export interface GuardDeps {
  readonly sessions: SessionLookup;
  readonly proxies: TrustedProxies;
  readonly clock: Clock;
  /** False turns off tokens in queries, the third place of spec 4.2 (T12). */
  readonly allowQueryToken: boolean;
  readonly rates: { readonly visitor: BucketRate; readonly operator: BucketRate };
  readonly isTls: boolean;
  /** Called for each request that carries its token in its query. */
  readonly onQueryToken: () => void;
}

/** Path prefixes reserved for operators, with or without a route (spec 4.1). */
const OPERATOR_PATHS: readonly string[] = [
  "/api/actions/",
  "/api/rollouts",
  "/api/logs/",
  "/api/users",
  "/api/audit",
  "/api/silences",
  "/api/maintenance",
  "/api/notices",
];

/** The guard's rules for a path, computed once for each route. */
export interface PathRules {
  readonly isForOperators: boolean;
  /** True when requests count against the caller's rate. */
  readonly isCounted: boolean;
  /** Headers of every response. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What the guard found out about a request before it stopped. */
export interface Verdict {
  client: ClientFacts | undefined;
  /** True when the query has a token, valid or not. */
  hasQueryToken: boolean;
  credential: Credential | undefined;
  viewer: Viewer | undefined;
  /** Why the request is refused; undefined when it is allowed. */
  refusal: Error | undefined;
}

/** A request with the guard's notes. */
interface NotedRequest extends IncomingMessage {
  [ID]?: string;
  [VERDICT]?: Verdict;
}

const ID = Symbol("request id");
const VERDICT = Symbol("verdict");

declare module "fastify" {
  interface FastifyContextConfig {
    /** Set by the guard when a route is registered. */
    rules?: PathRules;
  }
  interface FastifyRequest {
    /** Set before any handler runs; read it through `factsOf`. */
    client: ClientFacts | undefined;
    credential: Credential | undefined;
  }
}

/** The facts about the client's connection. */
export function factsOf(request: FastifyRequest): ClientFacts {
  if (request.client === undefined) throw new TypeError("nobody has looked yet where the request comes from");
  return request.client;
}

/**
 * True when the request's page is of another origin, or with `needsProof` has no proven origin. For requests
 * that a cookie authenticates.
 */
export function isForeign(request: FastifyRequest, needsProof: boolean): boolean {
  return isForeignTo(factsOf(request), request.raw, needsProof);
}

/** The request's id: the client's own when it is safe for logs, else a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const noted: NotedRequest = request;
  noted[ID] ??= requestIdFrom(request.headers[REQUEST_ID_HEADER]);
  return noted[ID];
}

/** Allows or refuses every request to the console, HTTP and WebSocket alike. */
export class Guard {
  readonly #deps: GuardDeps;
  readonly #buckets: Readonly<Record<Viewer["kind"], TokenBuckets>>;

  constructor(deps: GuardDeps) {
    this.#deps = deps;
    this.#buckets = {
      visitor: new TokenBuckets(deps.clock, deps.rates.visitor),
      operator: new TokenBuckets(deps.clock, deps.rates.operator),
    };
  }

  /** The rules for a route's pattern, or for the requested path where no route matches. */
  rulesOf(path: string, auth?: RouteAuth): PathRules {
    return {
      isForOperators: auth === "operator" || isOperatorPath(path),
      // A WebSocket receives the whole cluster when it opens, so it counts like a request for it.
      isCounted: /^\/(?:api|ws)\//.test(path),
      headers: headersOf(path, this.#deps.isTls),
    };
  }

  /**
   * Authenticates a request and decides on access. A second call for the same request returns the same
   * verdict and counts nothing.
   */
  judge(request: IncomingMessage, rules: PathRules, query: Record<string, unknown>): Verdict {
    const noted: NotedRequest = request;
    if (noted[VERDICT] !== undefined) return noted[VERDICT];
    const verdict: Verdict = {
      client: undefined,
      hasQueryToken: false,
      credential: undefined,
      viewer: undefined,
      refusal: undefined,
    };
    try {
      withRequestIdAtOnce(requestIdOf(request), () => this.#look(request, rules, query, verdict));
    } catch (error) {
      verdict.refusal = error as Error;
    }
    noted[VERDICT] = verdict;
    return verdict;
  }

  #look(request: IncomingMessage, rules: PathRules, query: Record<string, unknown>, verdict: Verdict): void {
    const { proxies, sessions, allowQueryToken, onQueryToken } = this.#deps;
    const fromQuery = takeQueryToken(query);
    verdict.hasQueryToken = fromQuery !== undefined;
    requireOneHost(request);
    const client = clientFacts(request, proxies);
    verdict.client = client;
    verdict.credential = shownCredential(request.headers, allowQueryToken ? fromQuery : undefined);
    if (verdict.credential?.from === "query") onQueryToken();
    verdict.viewer = lookWho(client, verdict.credential, sessions);
    if (rules.isCounted) limit(verdict.viewer, this.#buckets);
    admit(request, rules, { client, viewer: verdict.viewer, credential: verdict.credential });
  }
}

/** Puts the guard before every route of the application, and before paths without one. */
export function addGuard(app: App, guard: Guard): void {
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
    route.config = { ...route.config, auth, rules: guard.rulesOf(route.url, auth) };
  });
  // A callback, not a promise, because nothing is awaited.
  app.addHook("onRequest", (request, reply, done) => {
    const rules = request.routeOptions.config?.rules ?? guard.rulesOf(pathOf(request));
    reply.header(REQUEST_ID_HEADER, request.id);
    reply.headers(rules.headers);
    const verdict = guard.judge(request.raw, rules, (request.query ?? {}) as Record<string, unknown>);
    request.client = verdict.client;
    request.credential = verdict.credential;
    request.viewer = verdict.viewer;
    withRequestId(request.id, () => done(verdict.refusal));
  });
  // Events of a body that is still arriving run outside the scope above.
  app.addHook("preValidation", (request, _reply, done) => {
    if (request.body === undefined) done();
    else withRequestId(request.id, done);
  });
}

/**
 * Requires exactly one Host header, because the host decides which pages are our own (RFC 9112, 3.2).
 * HTTP/1.0 may omit it.
 */
function requireOneHost({ rawHeaders, httpVersion }: IncomingMessage): void {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.length === 4 && name.toLowerCase() === "host") count++;
  }
  if (count > 1 || (count === 0 && httpVersion !== "1.0")) {
    throw new ProblemError("BAD_REQUEST", "a request names one Host");
  }
}

function isOperatorPath(path: string): boolean {
  return OPERATOR_PATHS.some(
    (prefix) => path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`),
  );
}

function headersOf(path: string, isTls: boolean): Readonly<Record<string, string>> {
  const headers = { ...securityHeaders(path, isTls), "x-svc-version": VERSION };
  // A cache must not show a visitor a response made for an operator (W-14).
  return path.startsWith("/api/")
    ? { ...headers, "cache-control": "no-store", vary: "Cookie, Authorization" }
    : headers;
}

function lookWho(facts: ClientFacts, credential: Credential | undefined, sessions: SessionLookup): Viewer {
  const session = credential === undefined ? undefined : sessions.byToken(credential.token);
  return session === undefined
    ? { kind: "visitor", address: facts.address }
    : { kind: "operator", address: facts.address, session };
}

function limit(viewer: Viewer, buckets: Readonly<Record<Viewer["kind"], TokenBuckets>>): void {
  const waitMs =
    viewer.kind === "operator"
      ? buckets.operator.take(viewer.session.id)
      : buckets.visitor.take(networkOf(viewer.address));
  if (waitMs === 0) return;
  throw new ProblemError("RATE_LIMITED", "too many requests; wait a little", {
    retryAfterSeconds: waitMs / 1_000,
  });
}

function admit(
  request: IncomingMessage,
  { isForOperators }: PathRules,
  by: { readonly client: ClientFacts; readonly viewer: Viewer; readonly credential: Credential | undefined },
): void {
  const isOperator = by.viewer.kind === "operator";
  if (isForOperators && !isOperator) {
    throw new ProblemError("AUTH_REQUIRED", "sign in as an operator first: POST /api/auth/login");
  }
  // Only a cookie, which browsers add by themselves, can be abused by other sites' pages.
  if (
    isOperator &&
    by.credential?.from === "cookie" &&
    changesState(request.method ?? "") &&
    isForeignTo(by.client, request, true)
  ) {
    throw new ProblemError(
      "ORIGIN_REJECTED",
      "a request that changes something must come from a page of this console",
    );
  }
}

function isForeignTo({ isSecure }: ClientFacts, { headers }: IncomingMessage, needsProof: boolean): boolean {
  const sender = senderOf(headers, isSecure);
  return sender === "foreign" || (sender === "untold" && needsProof);
}

/**
 * The route's pattern however the path is encoded (`/%61pi/…`); without a route, the path without its query.
 */
function pathOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? request.url.split("?", 1)[0] ?? "";
}
