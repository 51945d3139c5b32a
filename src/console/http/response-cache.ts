// Answers that lie ready as bytes go out by a short way: past the gate like all others, and from there with neither routing nor hooks.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { REQUEST_ID_HEADER, withRequestIdAtOnce } from "#base/request-scope.ts";
import { type Guard, type PathRules, requestIdOf } from "./guard.ts";
import { routeOf } from "./problem-reply.ts";
import { JSON_TYPE, sendJson, type Viewer, viewerOf } from "./route.ts";

/** Addresses of the console, each with its query, that are known to have answers which may lie ready; and the characters of one. */
export const KEPT_URLS_MAX = 1_000;
export const KEPT_URL_MAX_LENGTH = 1_024;

/** An answer that is there: 200 with JSON. */
export interface KeptAnswer {
  readonly body: Buffer;
  /** By which whoever has it already knows it again. */
  readonly etag?: string;
}

/** Finds the answer for whoever asks; undefined when something must be made or waited for first. Never rejects a viewer: the gate has. */
export type FindKept = (viewer: Viewer) => KeptAnswer | undefined;

/** An answered request, as logs and figures take it. */
export interface Answered {
  /** Method and pattern of the route. */
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly address: string | undefined;
}

/** What the short way needs. */
export interface ResponseCacheDeps {
  readonly guard: Guard;
  readonly clock: Clock;
  readonly onAnswered: (answered: Answered) => void;
}

/** What is known of an address once a request for it has come the long way. */
interface KnownUrl {
  readonly route: string;
  readonly rules: PathRules;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly find: FindKept;
}

declare module "fastify" {
  interface FastifyInstance {
    responseCache: ResponseCache;
  }
}

const NO_QUERY = Object.freeze({});

/** The addresses whose answers may lie ready: each is routed, and its query checked, when it is asked for the first time. */
export class ResponseCache {
  readonly #deps: ResponseCacheDeps;
  readonly #urls = new LRUCache<string, KnownUrl>(atMost(KEPT_URLS_MAX));
  #isClosed = false;

  constructor(deps: ResponseCacheDeps) {
    this.#deps = deps;
  }

  /** Answers a request if it can at once; false when the request has to go the long way, which alone tells of what went wrong. */
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

  /** From now on requests for this very address find their answer so. An address that holds a token is not kept. */
  remember(request: FastifyRequest, find: FindKept): void {
    const url = request.raw.url ?? "";
    const { rules } = request.routeOptions.config;
    if (this.#isClosed || rules === undefined || url.length > KEPT_URL_MAX_LENGTH || request.method !== "GET")
      return;
    if (this.#deps.guard.judge(request.raw, rules, NO_QUERY).hasQueryToken) return;
    const headers = Object.entries(rules.headers).flat();
    this.#urls.set(url, { route: routeOf(request), rules, headers, find });
  }

  /** Everything goes the long way from now on. */
  close(): void {
    this.#isClosed = true;
    this.#urls.clear();
  }
}

/** Sends what is there, now and by the short way from now on; false when there is nothing yet, and the handler must make it. */
export function sendKept(request: FastifyRequest, reply: FastifyReply, find: FindKept): boolean {
  request.server.responseCache.remember(request, find);
  const kept = find(viewerOf(request));
  if (kept === undefined) return false;
  sendAnswer(request, reply, kept);
  return true;
}

/** Sends an answer, or nothing to whoever shows that he has it. */
export function sendAnswer(request: FastifyRequest, reply: FastifyReply, { body, etag }: KeptAnswer): void {
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

/** What goes wrong here goes wrong on the long way too, and is told there. */
function foundBy(find: FindKept, viewer: Viewer): KeptAnswer | undefined {
  try {
    return find(viewer);
  } catch {
    return undefined;
  }
}
