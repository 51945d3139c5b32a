// Counts acts of each address in a sliding window, for limits that are a number in a time (D17, W-03).
import { LRUCache } from "lru-cache";
import { atMost } from "./at-most.ts";
import type { Clock } from "./clock.ts";
import { RATE_LIMIT_ADDRESSES } from "./limits.ts";
import { networkOf } from "./network.ts";

/** Limit per address: at most count in any windowMs. */
export interface WindowLimit {
  readonly count: number;
  readonly windowMs: number;
}

/**
 * The times of each address's last acts, on the steady clock, for at most 20,000 addresses. All addresses of
 * an IPv6 /64 count as one, since a single machine has them all.
 *
 * A token bucket is cheaper, and serves for rates of work. It would admit nearly twice the number in one
 * window, once from its burst and once from its refill: ten guesses of a password where D17 allows five.
 */
export class SlidingWindow {
  readonly #clock: Clock;
  readonly #limit: WindowLimit;
  readonly #moments = new LRUCache<string, number[]>(atMost(RATE_LIMIT_ADDRESSES));

  constructor(clock: Clock, limit: WindowLimit) {
    this.#clock = clock;
    this.#limit = limit;
  }

  /**
   * Counts one act and returns 0; at the limit returns the milliseconds until the next is allowed, and counts
   * nothing.
   */
  take(address: string): number {
    const waitMs = this.waitMs(address);
    if (waitMs === 0) this.count(address);
    return waitMs;
  }

  /** Counts one act, also at the limit: then the oldest one gives way. */
  count(address: string): void {
    const moments = this.#inWindow(address);
    moments.push(this.#clock.steadyMs());
    if (moments.length > this.#limit.count) moments.shift();
    this.#moments.set(networkOf(address), moments);
  }

  /** Takes an act back: the last one, or the one of a moment. */
  giveBack(address: string, moment?: number): void {
    const moments = this.#moments.get(networkOf(address)) ?? [];
    const index = moment === undefined ? moments.length - 1 : moments.indexOf(moment);
    if (index >= 0) moments.splice(index, 1);
  }

  /** Takes all acts back. */
  clear(address: string): void {
    this.#moments.delete(networkOf(address));
  }

  /** Milliseconds until the next act is allowed; 0 for now. */
  waitMs(address: string): number {
    const moments = this.#inWindow(address);
    const oldestMs = moments.length >= this.#limit.count ? moments[0] : undefined;
    if (oldestMs === undefined) return 0;
    return Math.max(1, Math.ceil(oldestMs + this.#limit.windowMs - this.#clock.steadyMs()));
  }

  /** Steady times of the acts in the window, oldest first. */
  momentsOf(address: string): readonly number[] {
    return this.#inWindow(address);
  }

  #inWindow(address: string): number[] {
    const moments = this.#moments.get(networkOf(address)) ?? [];
    const sinceMs = this.#clock.steadyMs() - this.#limit.windowMs;
    while (moments[0] !== undefined && moments[0] <= sinceMs) moments.shift();
    return moments;
  }
}
