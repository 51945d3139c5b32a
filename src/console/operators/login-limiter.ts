// Limits wrong passwords: five per address in 15 minutes, and in a flood only first attempts (D17, W-03).
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { RATE_LIMIT_ADDRESSES } from "#base/limits.ts";
import { networkOf } from "#base/network.ts";

/** Wrong passwords from one address within LOGIN_FAILURE_WINDOW_MS; more are refused unchecked (D17). */
export const LOGIN_FAILURES_PER_WINDOW = 5;
/** See LOGIN_FAILURES_PER_WINDOW. */
const LOGIN_FAILURE_WINDOW_MS: number = 15 * 60_000;
/**
 * Wrong passwords of all addresses within LOGIN_TOTAL_WINDOW_MS; above it every address with a failure is
 * refused (D17).
 */
const LOGIN_FAILURES_TOTAL = 100;
/** See LOGIN_FAILURES_TOTAL. */
const LOGIN_TOTAL_WINDOW_MS = 3_600_000;

/**
 * An admitted attempt. It counts as wrong until its outcome is set, so that concurrent ones cannot pass the
 * limit.
 */
export interface LoginAttempt {
  /** The password was right: clears the address's failures. */
  succeeded(): void;
  /** The password was not checked: removes the attempt. */
  takeBack(): void;
}

/** Current failures, for metrics and alerts. */
export interface LoginFailures {
  /** Within the last hour, up to the limit for all addresses. */
  readonly lastHour: number;
  /** True while every address with a failure is refused. */
  readonly isFlood: boolean;
}

/** Records the moments of wrong passwords by address, on the steady clock; an IPv6 /64 is one address. */
export class LoginLimiter {
  readonly #clock: Clock;
  readonly #perAddress: number;
  /**
   * Moments of each address's failures within the longer window, oldest first; bounded by the shorter
   * window's limit.
   */
  readonly #moments = new LRUCache<string, number[]>(atMost(RATE_LIMIT_ADDRESSES));
  /** The newest failures of all addresses, oldest first, up to the limit. */
  #all: number[] = [];

  constructor(clock: Clock, perAddress: number = LOGIN_FAILURES_PER_WINDOW) {
    this.#clock = clock;
    this.#perAddress = perAddress;
  }

  /** Begins an attempt from this address; or returns the milliseconds until the address may try again. */
  begin(address: string): LoginAttempt | number {
    const place = networkOf(address);
    const waitMs = this.#waitMs(place);
    if (waitMs > 0) return waitMs;
    const nowMs = this.#clock.steadyMs();
    this.#moments.set(place, [...this.#momentsOf(place), nowMs]);
    this.#all = [...this.#all, nowMs].slice(-LOGIN_FAILURES_TOTAL);
    return {
      succeeded: () => {
        this.#forget(nowMs);
        this.#moments.delete(place);
      },
      takeBack: () => {
        this.#forget(nowMs);
        const moments = [...this.#momentsOf(place)];
        const index = moments.indexOf(nowMs);
        if (index >= 0) moments.splice(index, 1);
        this.#moments.set(place, moments);
      },
    };
  }

  /** The failures of the last hour. */
  failures(): LoginFailures {
    this.#prune();
    return { lastHour: this.#all.length, isFlood: this.#all.length >= LOGIN_FAILURES_TOTAL };
  }

  #waitMs(place: string): number {
    this.#prune();
    const nowMs = this.#clock.steadyMs();
    const moments = this.#momentsOf(place);
    const recent = moments.filter((moment) => moment > nowMs - LOGIN_FAILURE_WINDOW_MS);
    const oldest = recent.length >= this.#perAddress ? recent.at(-this.#perAddress) : undefined;
    let untilMs = oldest === undefined ? nowMs : oldest + LOGIN_FAILURE_WINDOW_MS;
    const last = moments.at(-1);
    if (this.#all.length >= LOGIN_FAILURES_TOTAL && last !== undefined) {
      // Until the flood ends, or this address's last failure expires.
      untilMs = Math.max(untilMs, Math.min(this.#all[0] ?? nowMs, last) + LOGIN_TOTAL_WINDOW_MS);
    }
    return Math.max(0, Math.ceil(untilMs - nowMs));
  }

  #momentsOf(place: string): readonly number[] {
    const sinceMs = this.#clock.steadyMs() - LOGIN_TOTAL_WINDOW_MS;
    return (this.#moments.get(place) ?? []).filter((moment) => moment > sinceMs);
  }

  #prune(): void {
    const sinceMs = this.#clock.steadyMs() - LOGIN_TOTAL_WINDOW_MS;
    if ((this.#all[0] ?? sinceMs + 1) <= sinceMs) this.#all = this.#all.filter((moment) => moment > sinceMs);
  }

  #forget(moment: number): void {
    const index = this.#all.indexOf(moment);
    if (index >= 0) this.#all.splice(index, 1);
  }
}
