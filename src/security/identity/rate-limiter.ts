// Limits the acts of each address in a sliding window (D17).
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { RATE_LIMIT_ADDRESSES } from "#base/limits.ts";
import { networkOf } from "#base/network.ts";

/** Limit per address: at most count in any windowMs. */
export interface Rate {
  readonly count: number;
  readonly windowMs: number;
}

/**
 * The times of each address's last acts, on the steady clock, for at most 20,000 addresses. All addresses of
 * an IPv6 /64 count as one, since a single machine has them all.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #rate: Rate;
  readonly #moments = new LRUCache<string, number[]>(atMost(RATE_LIMIT_ADDRESSES));

  constructor(clock: Clock, rate: Rate) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /**
   * Counts one act and returns 0; at the limit returns the milliseconds until the next is allowed, and counts
   * nothing.
   */
  take(address: string): number {
    const waitMs = this.waitMs(address);
    if (waitMs > 0) return waitMs;
    const place = networkOf(address);
    const moments = this.#moments.get(place) ?? [];
    moments.push(this.#clock.steadyMs());
    this.#moments.set(place, moments);
    return 0;
  }

  /** Takes the last act back. */
  giveBack(address: string): void {
    this.#moments.get(networkOf(address))?.pop();
  }

  /** Milliseconds until the next act is allowed; 0 for now. */
  waitMs(address: string): number {
    const moments = this.#moments.get(networkOf(address));
    if (moments === undefined) return 0;
    const nowMs = this.#clock.steadyMs();
    while (moments[0] !== undefined && moments[0] <= nowMs - this.#rate.windowMs) moments.shift();
    const oldestMs = moments.length >= this.#rate.count ? moments[0] : undefined;
    return oldestMs === undefined ? 0 : Math.max(1, Math.ceil(oldestMs + this.#rate.windowMs - nowMs));
  }
}
