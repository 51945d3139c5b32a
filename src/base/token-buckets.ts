// Token buckets by key, for rates of work: each refills steadily up to its burst, and uses take from it (D17).
import { LRUCache } from "lru-cache";
import { atMost } from "./at-most.ts";
import type { Clock } from "./clock.ts";
import { RATE_LIMIT_ADDRESSES } from "./limits.ts";

/** Rate of one key in the caller's unit: requests, bytes. */
export interface BucketRate {
  readonly perSecond: number;
  /** The most that may be taken at once after idle time. */
  readonly burst: number;
}

/** Tolerance for rounding errors in sums of fractions. */
const ROUNDING = 1e-9;

/** One bucket per key on the steady clock. At most 20,000 are kept; a dropped one is full. */
export class TokenBuckets {
  readonly #clock: Clock;
  readonly #rate: BucketRate;
  /** When each bucket will be full again, on the steady clock: its whole state. */
  readonly #fullAtMs = new LRUCache<string, number>(atMost(RATE_LIMIT_ADDRESSES));

  constructor(clock: Clock, rate: BucketRate) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /**
   * Takes one and returns 0; when empty, takes nothing and returns the milliseconds until one is available.
   */
  take(key: string): number {
    const waitMs = this.waitMs(key);
    if (waitMs === 0) this.#use(key, 1);
    return waitMs;
  }

  /** Milliseconds until one is available; 0 when one is now. */
  waitMs(key: string): number {
    const { perSecond, burst } = this.#rate;
    const intervalMs = 1_000 / perSecond;
    return Math.max(0, Math.ceil(this.#untilFullMs(key) + intervalMs - burst * intervalMs));
  }

  /** The bucket's fill as a part of its burst: 1 is full, below 0 is overdrawn. */
  level(key: string): number {
    const { perSecond, burst } = this.#rate;
    return 1 - (this.#untilFullMs(key) * perSecond) / (1_000 * burst);
  }

  /**
   * Takes an amount unless less than the part `keep` of the burst would remain; false when it took nothing.
   */
  takeKeeping(key: string, amount: number, keep: number): boolean {
    if (this.level(key) - amount / this.#rate.burst < keep - ROUNDING) return false;
    this.#use(key, amount);
    return true;
  }

  /** Takes an amount that is already used: the bucket may be overdrawn by as much as its burst. */
  charge(key: string, amount: number): void {
    const { burst } = this.#rate;
    const left = (1 + this.level(key)) * burst;
    this.#use(key, Math.min(amount, left));
  }

  #untilFullMs(key: string): number {
    return Math.max(0, (this.#fullAtMs.get(key) ?? 0) - this.#clock.steadyMs());
  }

  #use(key: string, amount: number): void {
    const fullAtMs = this.#clock.steadyMs() + this.#untilFullMs(key);
    this.#fullAtMs.set(key, fullAtMs + (amount * 1_000) / this.#rate.perSecond);
  }
}
