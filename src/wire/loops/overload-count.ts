// Counts connections that were turned away, or closed for others, over all loops, and tells of them.
import type { Clock } from "#base/clock.ts";

/** Between two reports; the same as of a server with one loop. */
const TOLD_EVERY_MS = 60_000;
/** A report waits for others of the same rush. */
const RUSH_MS = 1_000;

/** The count of one server. */
export class OverloadCount {
  readonly #clock: Clock;
  readonly #tell: (error: Error) => void;
  #count = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #stop: (() => void) | undefined;

  /** `tell` is called once a minute at most. */
  constructor(clock: Clock, tell: (error: Error) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** Counts connections. */
  add(count = 1): void {
    if (count === 0) return;
    this.#count += count;
    const sinceMs = this.#clock.steadyMs() - this.#toldAtMs;
    this.#stop ??= this.#clock.after(Math.max(RUSH_MS, TOLD_EVERY_MS - sinceMs), () => this.#report());
  }

  /** Ends the telling. */
  close(): void {
    this.#stop?.();
  }

  #report(): void {
    this.#stop = undefined;
    this.#toldAtMs = this.#clock.steadyMs();
    const count = this.#count;
    this.#count = 0;
    this.#tell(new Error(`${count} connections were turned away, or closed to make room for others`));
  }
}
