// The time in which this process ran: that it stood still itself is nobody else's silence.
import type { Clock } from "./clock.ts";

/**
 * A clock that is looked at again and again, and whose steady time goes on by two such intervals at most between two looks. In the rest
 * the process stood still (stopped, paused with its machine, or out of memory): others were not heard, whatever they sent. Only for what
 * is judged of others; a term that was promised, such as that of a session, goes by the steady clock itself.
 */
export class AwakeClock implements Clock {
  readonly #clock: Clock;
  readonly #longestMs: number;
  #lookedMs: number;
  #awakeMs: number;

  /** `intervalMs` is the time between two looks. Until something stands still, the steady times of both clocks are the same. */
  constructor(clock: Clock, intervalMs: number) {
    this.#clock = clock;
    this.#longestMs = 2 * intervalMs;
    this.#lookedMs = clock.steadyMs();
    this.#awakeMs = this.#lookedMs;
  }

  /**
   * Counts the time up to now and lets others be judged by it: at once, or, where the process has stood still, after what came meanwhile
   * and lies unread has been read.
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
