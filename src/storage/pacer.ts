// Keeps reading below a rate: says how long to wait after so many bytes.

/** What was not used of the rate is not saved up, except so much of it. */
const BURST_MS = 100;

/** One reader's share of the disk. */
export class Pacer {
  readonly #msPerByte: number;
  #freeAtMs = Number.NEGATIVE_INFINITY;

  constructor(bytesPerSecond: number) {
    this.#msPerByte = 1_000 / bytesPerSecond;
  }

  /** Notes that bytes were read; returns the milliseconds to wait before the next are. nowMs is of a steady clock. */
  waitMs(bytes: number, nowMs: number): number {
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs - BURST_MS) + bytes * this.#msPerByte;
    return Math.max(0, this.#freeAtMs - nowMs);
  }
}
