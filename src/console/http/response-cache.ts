// Sends responses that are ready as bytes past the guard directly, without routing or hooks.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { REQUEST_ID_HEADER, withRequestIdAtOnce } from "#base/request-scope.ts";
import { type Guard, type PathRules, requestIdOf } from "./guard.ts";
import { routeOf } from "./problem-reply.ts";
import { JSON_TYPE, sendJson, type Viewer, viewerOf } from "./route.ts";

/** URLs, query included, that the cache remembers; and the characters of one. */
export const CACHED_URLS_MAX = 1_000;
export const CACHED_URL_MAX_LENGTH = 1_024;

/** A response that is ready: 200 with JSON. */
export interface ReadyResponse {
  readonly body: Buffer;
  /** Entity tag that clients send back in If-None-Match. */
  readonly etag?: string;
}

/**
 * Returns the ready response for an audience; undefined when it must be made first. Never refuses: the guard
 * has decided before.
 */
export type FindReady = (viewer: Viewer) => ReadyResponse | undefined;

/** A finished request, for logs and metrics. */
export interface Answered {
  /** Method and pattern of the route. */
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly address: string | undefined;
}

/** What the cache needs. */
export interface ResponseCacheDeps {
  readonly guard: Guard;
  readonly clock: Clock;
  readonly onAnswered: (answered: Answered) => void;
}

/** What the cache keeps of a URL after its first request through the router. */
interface KnownUrl {
  readonly route: string;
  readonly rules: PathRules;
  /** Names and values alternate. */
  readonly headers: readonly string[];
  readonly find: FindReady;
}

declare module "fastify" {
  interface FastifyInstance {
    responseCache: ResponseCache;
  }
}

const NO_QUERY = Object.freeze({});

/** URLs whose responses may be ready. The first request for each is routed and has its query checked. */
export class ResponseCache {
  readonly #deps: ResponseCacheDeps;
  readonly #urls = new LRUCache<string, KnownUrl>(atMost(CACHED_URLS_MAX));
  #isClosed = false;

  constructor(deps: ResponseCacheDeps) {
    this.#deps = deps;
  }

  /** Answers a request if a response is ready; false sends it to the router, which also reports errors. */
  answer(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.method !== "GET" || request.headers["if-none-match"] !== undefined) return false;
    const known = this.#urls.get(request.url ?? "");
    if (known === undefined) return false;
    const { guard, clock, onAnswered } = this.#deps;
    const startedMs = clock.steadyMs();
    const { viewer, refusal, client } = guard.judge(request, known.rules, NO_QUERY);
    if (viewer === undefined || refusal !== undefined) return false;
    const kept = foundBy(known.find, viewer);
    if (kept === undefined) return false;
    const id = requestIdOf(request);
    response.on("finish", () => {
      const { route } = known;
      const ms = Math.round(clock.steadyMs() - startedMs);
      withRequestIdAtOnce(id, () => onAnswered({ route, status: 200, ms, address: client?.address }));
    });
    const headers = [REQUEST_ID_HEADER, id, ...known.headers];
    if (kept.etag !== undefined) headers.push("etag", kept.etag);
    headers.push("content-type", JSON_TYPE, "content-length", String(kept.body.length));
    response.writeHead(200, headers);
    response.end(kept.body);
    return true;
  }

  /** Remembers this URL, so that later requests are answered by `find`. A URL with a token is not kept. */
  remember(request: FastifyRequest, find: FindReady): void {
    const url = request.raw.url ?? "";
    const { rules } = request.routeOptions.config;
    if (
      this.#isClosed ||
      rules === undefined ||
      url.length > CACHED_URL_MAX_LENGTH ||
      request.method !== "GET"
    )
      return;
    if (this.#deps.guard.judge(request.raw, rules, NO_QUERY).hasQueryToken) return;
    const headers = Object.entries(rules.headers).flat();
    this.#urls.set(url, { route: routeOf(request), rules, headers, find });
  }

  /** Sends every later request through the router. */
  close(): void {
    this.#isClosed = true;
    this.#urls.clear();
  }
}

/** Sends a ready response and remembers the URL; false when the handler must make the response. */
export function sendReady(request: FastifyRequest, reply: FastifyReply, find: FindReady): boolean {
  request.server.responseCache.remember(request, find);
  const kept = find(viewerOf(request));
  if (kept === undefined) return false;
  sendAnswer(request, reply, kept);
  return true;
}

/** Sends a response, or 304 to a client that already has it. */
export function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  { body, etag }: ReadyResponse,
): void {
  if (etag !== undefined) reply.header("etag", etag);
  const known = request.headers["if-none-match"];
  if (known !== undefined && etag !== undefined && hasTag(known, etag)) {
    reply.code(304).send();
    return;
  }
  sendJson(reply, body);
}

function hasTag(known: string, etag: string): boolean {
  return known.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
}

/** An error here is ignored: the request goes through the router, which fails alike and reports it. */
function foundBy(find: FindReady, viewer: Viewer): ReadyResponse | undefined {
  try {
    return find(viewer);
  } catch {
    return undefined;
  }
}
