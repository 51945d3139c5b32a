// The clock for ages: steady, with the time that the machine slept included (C-01).
import type { Clock } from "#base/clock.ts";

/** A wall clock step of this size against the steady clock triggers a look-up of the time asleep. */
const WALL_STEP_MS = 500;
/** Otherwise the time asleep is looked up this often, since each system call costs microseconds. */
const LOOK_UP_EVERY_MS = 1_000;
/** The time since the start is coarse; a smaller difference is no sleep. */
const COARSENESS_MS = 1_000;

/**
 * Milliseconds that never go back, are independent of the wall clock and include suspend. The steady clock
 * stands still during sleep: without this, a laptop opened next morning would still hold yesterday's
 * sessions.
 */
export class AgeClock {
  readonly #clock: Clock;
  readonly #firstGapMs: number;
  #asleepMs = 0;
  #lookedUpAtMs: number;
  #wallGapMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    const steadyMs = clock.steadyMs();
    this.#firstGapMs = (clock.bootMs?.() ?? steadyMs) - steadyMs;
    this.#lookedUpAtMs = steadyMs;
    this.#wallGapMs = clock.wallMs() - steadyMs;
  }

  /** Now, on this clock. */
  nowMs(): number {
    const steadyMs = this.#clock.steadyMs();
    const wallGapMs = this.#clock.wallMs() - steadyMs;
    // A sleep shows as a step of the wall clock; since a step alone proves nothing, the system's own count
    // decides.
    if (
      steadyMs - this.#lookedUpAtMs >= LOOK_UP_EVERY_MS ||
      Math.abs(wallGapMs - this.#wallGapMs) >= WALL_STEP_MS
    ) {
      this.#lookedUpAtMs = steadyMs;
      this.#wallGapMs = wallGapMs;
      const asleepMs = (this.#clock.bootMs?.() ?? steadyMs) - steadyMs - this.#firstGapMs;
      if (asleepMs >= this.#asleepMs + COARSENESS_MS) this.#asleepMs = asleepMs;
    }
    return steadyMs + this.#asleepMs;
  }
}
