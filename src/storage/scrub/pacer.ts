// Keeps reading below a rate: says how long to wait after so many bytes, or rows.

/** What was not used of the rate is not saved up, except so much of it. */
const BURST_MS = 100;

/** One reader's share of the disk. */
export class Pacer {
  readonly #msPerUnit: number;
  #freeAtMs = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number) {
    this.#msPerUnit = 1_000 / perSecond;
  }

  /** Notes how many were read; returns the milliseconds to wait before the next are. nowMs is of a steady clock. */
  waitMs(count: number, nowMs: number): number {
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs - BURST_MS) + count * this.#msPerUnit;
    return Math.max(0, this.#freeAtMs - nowMs);
  }
}
