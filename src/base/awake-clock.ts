// A clock of the time in which this process ran, so that its own standstill is not taken for others' silence.
import type { Clock } from "./clock.ts";

/**
 * A clock that is looked at in intervals; between two looks its steady time advances by at most two
 * intervals. Any longer time is a standstill of the process (stopped, paused with its machine, out of
 * memory), when it heard no others. Only judgements of others use it; promised terms, such as a session's,
 * use the steady clock itself.
 */
export class AwakeClock implements Clock {
  readonly #clock: Clock;
  readonly #longestMs: number;
  #lookedMs: number;
  #awakeMs: number;

  /** `intervalMs` is the time between two looks. Until a standstill both clocks have the same steady time. */
  constructor(clock: Clock, intervalMs: number) {
    this.#clock = clock;
    this.#longestMs = 2 * intervalMs;
    this.#lookedMs = clock.steadyMs();
    this.#awakeMs = this.#lookedMs;
  }

  /**
   * Counts the time up to now, then calls `judge`: at once, or after a standstill once messages have been
   * read.
   */
  look(judge: (nowMs: number) => void): void {
    const stoodStill = this.#clock.steadyMs() - this.#lookedMs > this.#longestMs;
    this.#awakeMs = this.steadyMs();
    this.#lookedMs = this.#clock.steadyMs();
    // Sockets are read between the timers of a turn and its immediates.
    if (stoodStill) setImmediate(() => judge(this.steadyMs()));
    else judge(this.#awakeMs);
  }

  steadyMs(): number {
    return this.#awakeMs + Math.min(this.#clock.steadyMs() - this.#lookedMs, this.#longestMs);
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#clock.after(delayMs, callback);
  }

  every(intervalMs: number, callback: () => void): () => void {
    return this.#clock.every(intervalMs, callback);
  }
}
