// Measures whether the bytes that a client owes arrive fast enough.
import type { ServerLimits } from "#wire/framing/limits.ts";

/** What the calls of one connection have received. */
export interface Arrivals {
  readonly arrivedBytes: number;
}

/**
 * The bytes that a connection brings while a call of it waits for some, window by window. A client may send
 * dozens of requests at once over one slow link, and HTTP/2 sends them one after the other. The last of them has
 * nothing for as long as the others take, so it is not judged by its own bytes.
 */
export class ArrivalRate {
  readonly #limits: Pick<ServerLimits, "progressWindowMs" | "minimumBytesPerSecond">;
  readonly #arrivals: Arrivals;
  #seenBytes: number;
  #sinceMs: number;

  /** `nowMs` is steady. */
  constructor(
    limits: Pick<ServerLimits, "progressWindowMs" | "minimumBytesPerSecond">,
    arrivals: Arrivals,
    nowMs: number,
  ) {
    this.#limits = limits;
    this.#arrivals = arrivals;
    this.#seenBytes = arrivals.arrivedBytes;
    this.#sinceMs = nowMs;
  }

  /**
   * True when a window ends with too few bytes. While the client owes nothing, each check begins a window.
   */
  isTooSlow(owesBytes: boolean, nowMs: number): boolean {
    const { progressWindowMs, minimumBytesPerSecond } = this.#limits;
    const elapsedMs = nowMs - this.#sinceMs;
    if (owesBytes && elapsedMs < progressWindowMs) return false;
    const { arrivedBytes } = this.#arrivals;
    const newBytes = arrivedBytes - this.#seenBytes;
    this.#sinceMs = nowMs;
    this.#seenBytes = arrivedBytes;
    return owesBytes && newBytes < (elapsedMs / 1_000) * minimumBytesPerSecond;
  }
}
