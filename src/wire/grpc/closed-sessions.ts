// Keeps a closed HTTP/2 session until its streams are collected, since freeing it earlier crashes Node.

import type { Http2Session } from "node:http2";
import { constants, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { systemClock } from "#base/clock.ts";
import {
  CLOSED_SESSIONS_KEPT,
  CLOSED_SESSIONS_MANY,
  COLLECTED_AT_MOST_EVERY_MS,
} from "#wire/framing/limits.ts";

/** Dependencies of the class. */
export interface ClosedSessionsDeps {
  /** Milliseconds that only grow. */
  readonly nowMs: () => number;
  /** Requests a collection of the whole heap. */
  readonly collect: () => void;
}

/**
 * A stream with refused headers (trailers in the middle, pseudo-headers in trailers) keeps them after its
 * end. When Node 26.10 frees a session, it asserts that no memory of it is in use
 * ("current_nghttp2_memory_"). At the end of a connection both become garbage in no certain order, so that
 * any client could end the process. A session is therefore kept until a full collection has taken its
 * streams.
 * V8 does not count a session's memory outside its heap, and would let thousands pile up. The class requests
 * the collection when many have closed.
 */
export class ClosedSessions {
  readonly #deps: ClosedSessionsDeps;
  /** Sessions closed since the last full collection, and before it: one may have begun when they closed. */
  #young = new Set<object>();
  #old: ReadonlySet<object> = new Set();
  #collectedAtMs: number;
  #isAsked = false;
  readonly #observer: PerformanceObserver;

  constructor(deps: ClosedSessionsDeps = { nowMs: () => systemClock.steadyMs(), collect: collectSoon }) {
    this.#deps = deps;
    this.#collectedAtMs = deps.nowMs();
    this.#observer = new PerformanceObserver((list) => {
      if (list.getEntries().some(isOfAll)) this.collected();
    });
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  /** Number of kept sessions. */
  get kept(): number {
    return this.#young.size + this.#old.size;
  }

  /** Watches a new session, to keep it from its end on. */
  watch(session: Http2Session): void {
    const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === "kHandle");
    const handle: unknown = symbol === undefined ? undefined : Reflect.get(session, symbol);
    if (typeof handle === "object" && handle !== null) session.once("close", () => this.#keep(handle));
  }

  /** After a full collection, releases sessions kept before the previous one began. */
  collected(): void {
    this.#old = this.#young;
    this.#young = new Set();
    this.#collectedAtMs = this.#deps.nowMs();
    this.#isAsked = false;
  }

  /** Stops watching collections. */
  close(): void {
    this.#observer.disconnect();
  }

  #keep(handle: object): void {
    letGo(handle);
    this.#young.add(handle);
    if (this.#isAsked || !this.#isTooMany()) return;
    this.#isAsked = true;
    this.#deps.collect();
  }

  #isTooMany(): boolean {
    const { size } = this.#young;
    if (size >= CLOSED_SESSIONS_KEPT) return true;
    return (
      size >= CLOSED_SESSIONS_MANY && this.#deps.nowMs() - this.#collectedAtMs >= COLLECTED_AT_MOST_EVERY_MS
    );
  }
}

function isOfAll(entry: PerformanceEntry & { readonly detail?: unknown }): boolean {
  return (entry.detail as { kind?: number } | null)?.kind === constants.NODE_PERFORMANCE_GC_MAJOR;
}

const OVER = { destroyed: true };
const nothing = (): void => undefined;

/**
 * Cuts the references of a closed handle: its session, and with that the socket and all listeners of both.
 */
function letGo(handle: object): void {
  for (const symbol of Object.getOwnPropertySymbols(handle))
    if (symbol.description === "owner_symbol") Reflect.set(handle, symbol, OVER);
  Reflect.set(handle, "ongracefulclosecomplete", nothing);
}

type Collect = (how: { readonly type: "major"; readonly execution: "async" }) => Promise<void>;
let collect: Collect | undefined;

/** Node exposes it only by a flag. */
function collectSoon(): void {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as Collect;
  }
  void collect({ type: "major", execution: "async" });
}
