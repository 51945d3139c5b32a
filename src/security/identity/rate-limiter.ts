// Counts what each address does in a sliding stretch of time, and says when it is too much (D17).
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { RATE_LIMIT_ADDRESSES } from "#base/limits.ts";
import { networkOf } from "#base/network.ts";

/** How much one address may do: at most count in any windowMs. */
export interface Rate {
  readonly count: number;
  readonly windowMs: number;
}

/**
 * The moments of each address's last acts, on the steady clock; at most 20,000 addresses are remembered. All addresses of an IPv6 /64
 * are one, since a single machine has them all.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #rate: Rate;
  readonly #moments = new LRUCache<string, number[]>(atMost(RATE_LIMIT_ADDRESSES));

  constructor(clock: Clock, rate: Rate) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /** Counts one act; returns 0, or the milliseconds until the address may act again, and then counts nothing. */
  take(address: string): number {
    const waitMs = this.waitMs(address);
    if (waitMs > 0) return waitMs;
    const place = networkOf(address);
    const moments = this.#moments.get(place) ?? [];
    moments.push(this.#clock.steadyMs());
    this.#moments.set(place, moments);
    return 0;
  }

  /** Takes the last act back: it turned out not to count. */
  giveBack(address: string): void {
    this.#moments.get(networkOf(address))?.pop();
  }

  /** Milliseconds until the address may act; 0 when it may now. */
  waitMs(address: string): number {
    const moments = this.#moments.get(networkOf(address));
    if (moments === undefined) return 0;
    const nowMs = this.#clock.steadyMs();
    while (moments[0] !== undefined && moments[0] <= nowMs - this.#rate.windowMs) moments.shift();
    const oldestMs = moments.length >= this.#rate.count ? moments[0] : undefined;
    return oldestMs === undefined ? 0 : Math.max(1, Math.ceil(oldestMs + this.#rate.windowMs - nowMs));
  }
}
