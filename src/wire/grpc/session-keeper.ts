// Keeps what Node holds of a closed HTTP/2 session until its streams are collected: freed before one of them, it ends the process.

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

/** What the keeper works with. */
export interface SessionKeeperDeps {
  /** Milliseconds that only grow. */
  readonly nowMs: () => number;
  /** Has the whole heap collected soon. */
  readonly collect: () => void;
}

/**
 * A stream whose headers were refused (trailers in the middle, pseudo-headers in trailers) goes on holding them after its end, and Node
 * 26.10 asserts, when it frees a session, that nobody holds memory of it ("current_nghttp2_memory_"). Both are garbage at once when a
 * connection ends, in no certain order; so any client could end the process. Kept until a whole collection has taken the streams, a
 * session is the last to go.
 *
 * V8 does not know of the memory outside its heap that a session holds, so it would let thousands pile up. Where many have closed, the
 * keeper asks for the collection.
 */
export class SessionKeeper {
  readonly #deps: SessionKeeperDeps;
  /** Those that closed since the last whole collection, and those before: one may have begun when they closed. */
  #young = new Set<object>();
  #old: ReadonlySet<object> = new Set();
  #collectedAtMs: number;
  #isAsked = false;
  readonly #observer: PerformanceObserver;

  constructor(deps: SessionKeeperDeps = { nowMs: () => systemClock.steadyMs(), collect: collectSoon }) {
    this.#deps = deps;
    this.#collectedAtMs = deps.nowMs();
    this.#observer = new PerformanceObserver((list) => {
      if (list.getEntries().some(isOfAll)) this.collected();
    });
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  /** Sessions that are kept. */
  get kept(): number {
    return this.#young.size + this.#old.size;
  }

  /** Keeps a session that has just begun, from its end on. */
  watch(session: Http2Session): void {
    const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === "kHandle");
    const handle: unknown = symbol === undefined ? undefined : Reflect.get(session, symbol);
    if (typeof handle === "object" && handle !== null) session.once("close", () => this.#keep(handle));
  }

  /** A whole collection has ended: what was kept before the one before it began may go. */
  collected(): void {
    this.#old = this.#young;
    this.#young = new Set();
    this.#collectedAtMs = this.#deps.nowMs();
    this.#isAsked = false;
  }

  /** Ends the watching of collections. */
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

/** Cuts what a handle that is over still leads to: its session, and with that the socket and all that listens to either. */
function letGo(handle: object): void {
  for (const symbol of Object.getOwnPropertySymbols(handle))
    if (symbol.description === "owner_symbol") Reflect.set(handle, symbol, OVER);
  Reflect.set(handle, "ongracefulclosecomplete", nothing);
}

type Collect = (how: { readonly type: "major"; readonly execution: "async" }) => Promise<void>;
let collect: Collect | undefined;

/** Node gives it to nobody who does not ask at its start. */
function collectSoon(): void {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as Collect;
  }
  void collect({ type: "major", execution: "async" });
}
