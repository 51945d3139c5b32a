// Keeps what Node holds of a closed HTTP/2 session until its streams are collected: freed before one of them, it ends the process.
import type { Http2Session } from "node:http2";
import { constants, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { CLOSED_SESSIONS_KEPT } from "./limits.ts";

/**
 * A stream whose headers were refused (trailers in the middle, pseudo-headers in trailers) goes on holding them after its end, and Node
 * 26.10 asserts, when it frees a session, that nobody holds memory of it ("current_nghttp2_memory_"). Both are garbage at once when a
 * connection ends, in no certain order; so any client could end the process. Kept until a whole collection has taken the streams, a
 * session is the last to go.
 */
export class SessionKeeper {
  /** Those that closed since the last whole collection, and those before: one may have begun when they closed. */
  #kept: readonly [Set<object>, Set<object>] = [new Set(), new Set()];
  readonly #observer: PerformanceObserver;

  constructor() {
    this.#observer = new PerformanceObserver((list) => {
      const isWhole = list.getEntries().some(isOfAll);
      if (isWhole) this.#collected();
    });
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  /** Keeps a session that has just begun, from its end on. */
  watch(session: Http2Session): void {
    const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === "kHandle");
    const handle: unknown = symbol === undefined ? undefined : Reflect.get(session, symbol);
    if (typeof handle !== "object" || handle === null) return;
    session.once("close", () => {
      const [young] = this.#kept;
      young.add(handle);
      const [oldest] = young;
      if (young.size > CLOSED_SESSIONS_KEPT && oldest !== undefined) young.delete(oldest);
    });
  }

  /** Ends the watching of collections. */
  close(): void {
    this.#observer.disconnect();
  }

  #collected(): void {
    this.#kept = [new Set(), this.#kept[0]];
  }
}

function isOfAll(entry: PerformanceEntry & { readonly detail?: unknown }): boolean {
  return (entry.detail as { kind?: number } | null)?.kind === constants.NODE_PERFORMANCE_GC_MAJOR;
}
