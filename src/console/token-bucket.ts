// How often each caller may ask: so many a second, and what was not used is saved up to a limit (D17).
import { LRUCache } from "lru-cache";
import type { Clock } from "#base/clock.ts";
import { RATE_LIMIT_ADDRESSES } from "#base/limits.ts";

/** How much one caller may ask. */
export interface RequestRate {
  readonly perSecond: number;
  /** What may be asked at once after a while of silence. */
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  steadyMs: number;
}

/** One bucket for each caller on the steady clock; at most 20,000 callers are remembered. */
export class TokenBuckets {
  readonly #clock: Clock;
  readonly #rate: RequestRate;
  readonly #buckets = new LRUCache<string, Bucket>({ max: RATE_LIMIT_ADDRESSES });

  constructor(clock: Clock, rate: RequestRate) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /** Takes one request; returns 0, or the milliseconds until the caller may ask again, and then takes nothing. */
  take(caller: string): number {
    const { perSecond, burst } = this.#rate;
    const nowMs = this.#clock.steadyMs();
    let bucket = this.#buckets.get(caller);
    if (bucket === undefined) {
      bucket = { tokens: burst, steadyMs: nowMs };
      this.#buckets.set(caller, bucket);
    } else {
      bucket.tokens = Math.min(
        burst,
        bucket.tokens + (Math.max(0, nowMs - bucket.steadyMs) / 1_000) * perSecond,
      );
      bucket.steadyMs = nowMs;
    }
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) / perSecond) * 1_000);
    bucket.tokens -= 1;
    return 0;
  }
}
