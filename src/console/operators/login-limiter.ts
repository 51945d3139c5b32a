// Limits wrong passwords: five per address in 15 minutes, and in a flood only first attempts (D17, W-03).
import type { Clock } from "#base/clock.ts";
import { SlidingWindow } from "#base/sliding-window.ts";

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

/** The key of all addresses together. */
const ALL = "";

/** Counts wrong passwords by address, on the steady clock; an IPv6 /64 is one address. */
export class LoginLimiter {
  readonly #clock: Clock;
  /** Failures of each address within the shorter window. */
  readonly #recent: SlidingWindow;
  /** Failures of each address, and of all, within the longer window: the newest ones, up to the limit. */
  readonly #ofAddress: SlidingWindow;
  readonly #ofAll: SlidingWindow;

  constructor(clock: Clock, perAddress: number = LOGIN_FAILURES_PER_WINDOW) {
    const total = { count: LOGIN_FAILURES_TOTAL, windowMs: LOGIN_TOTAL_WINDOW_MS };
    this.#clock = clock;
    this.#recent = new SlidingWindow(clock, { count: perAddress, windowMs: LOGIN_FAILURE_WINDOW_MS });
    this.#ofAddress = new SlidingWindow(clock, total);
    this.#ofAll = new SlidingWindow(clock, total);
  }

  /** Begins an attempt from this address; or returns the milliseconds until the address may try again. */
  begin(address: string): LoginAttempt | number {
    const waitMs = this.#waitMs(address);
    if (waitMs > 0) return waitMs;
    const nowMs = this.#clock.steadyMs();
    this.#recent.count(address);
    this.#ofAddress.count(address);
    this.#ofAll.count(ALL);
    return {
      succeeded: () => {
        this.#recent.clear(address);
        this.#ofAddress.clear(address);
        this.#ofAll.giveBack(ALL, nowMs);
      },
      takeBack: () => {
        this.#recent.giveBack(address, nowMs);
        this.#ofAddress.giveBack(address, nowMs);
        this.#ofAll.giveBack(ALL, nowMs);
      },
    };
  }

  /** The failures of the last hour. */
  failures(): LoginFailures {
    const lastHour = this.#ofAll.momentsOf(ALL).length;
    return { lastHour, isFlood: lastHour >= LOGIN_FAILURES_TOTAL };
  }

  #waitMs(address: string): number {
    const waitMs = this.#recent.waitMs(address);
    const [firstOfAll] = this.#ofAll.momentsOf(ALL);
    const last = this.#ofAddress.momentsOf(address).at(-1);
    if (!this.failures().isFlood || firstOfAll === undefined || last === undefined) return waitMs;
    // Until the flood ends, or this address's last failure expires.
    const untilMs = Math.min(firstOfAll, last) + LOGIN_TOTAL_WINDOW_MS;
    return Math.max(waitMs, Math.ceil(untilMs - this.#clock.steadyMs()));
  }
}
