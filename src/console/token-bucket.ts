// How often each caller may ask: so many a second, and what was not used is saved up to a limit (D17).
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { RATE_LIMIT_ADDRESSES } from "#base/limits.ts";

/** How much one caller may ask. */
export interface RequestRate {
  readonly perSecond: number;
  /** What may be asked at once after a while of silence. */
  readonly burst: number;
}

/** One bucket for each caller on the steady clock; at most 20,000 callers are remembered. */
export class TokenBuckets {
  readonly #clock: Clock;
  readonly #rate: RequestRate;
  /** When each caller's bucket will be full again, on the steady clock: all that has to be known of it. */
  readonly #fullAtMs = new LRUCache<string, number>(atMost(RATE_LIMIT_ADDRESSES));

  constructor(clock: Clock, rate: RequestRate) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /** Takes one request; returns 0, or the milliseconds until the caller may ask again, and then takes nothing. */
  take(caller: string): number {
    const { perSecond, burst } = this.#rate;
    const intervalMs = 1_000 / perSecond;
    const nowMs = this.#clock.steadyMs();
    const fullAtMs = Math.max(this.#fullAtMs.get(caller) ?? nowMs, nowMs);
    const waitMs = fullAtMs + intervalMs - burst * intervalMs - nowMs;
    if (waitMs > 0) return Math.ceil(waitMs);
    this.#fullAtMs.set(caller, fullAtMs + intervalMs);
    return 0;
  }
}
