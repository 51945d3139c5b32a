// Whether the wall clock may justify what cannot be undone: not for a day after it has jumped ahead.
import type { Clock } from "#base/clock.ts";

/** A wall clock that jumps further than this between two checks is distrusted. */
const CLOCK_JUMP_MS = 60 * 60_000;
/** How long it is distrusted: time for an operator to correct it before anything is deleted. */
const CLOCK_DISTRUST_MS = 24 * 60 * 60_000;

/** Watches the wall clock of one node; its users check it often. */
export class WallClockTrust {
  readonly #clock: Clock;
  readonly #onJump: (jumpedMs: number, distrustMs: number) => void;
  #wallAheadMs: number;
  #distrustUntilMs = 0;

  constructor(clock: Clock, onJump: (jumpedMs: number, distrustMs: number) => void) {
    this.#clock = clock;
    this.#onJump = onJump;
    this.#wallAheadMs = this.#wallAhead();
  }

  /** False for a day after the wall clock has jumped by more than the time that has passed. */
  isTrusted(): boolean {
    const aheadMs = this.#wallAhead();
    const jumpedMs = aheadMs - this.#wallAheadMs;
    this.#wallAheadMs = aheadMs;
    if (jumpedMs > CLOCK_JUMP_MS) {
      this.#distrustUntilMs = this.#clock.steadyMs() + CLOCK_DISTRUST_MS;
      this.#onJump(jumpedMs, CLOCK_DISTRUST_MS);
    } else if (jumpedMs < -CLOCK_JUMP_MS) this.#distrustUntilMs = 0;
    return this.#clock.steadyMs() >= this.#distrustUntilMs;
  }

  /** How far the wall clock is ahead of the one that counts from the machine's start, sleep included. */
  #wallAhead(): number {
    return this.#clock.wallMs() - (this.#clock.bootMs?.() ?? this.#clock.steadyMs());
  }
}
