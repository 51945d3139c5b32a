// Keeps reads below a rate: returns the wait after so many bytes or rows.

/** Unused rate is saved up for at most this time. */
const BURST_MS = 100;

/** One reader's share of the disk. */
export class Pacer {
  readonly #msPerUnit: number;
  #freeAtMs = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number) {
    this.#msPerUnit = 1_000 / perSecond;
  }

  /**
   * Records a count of reads; returns the milliseconds to wait before the next. nowMs is of a steady clock.
   */
  waitMs(count: number, nowMs: number): number {
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs - BURST_MS) + count * this.#msPerUnit;
    return Math.max(0, this.#freeAtMs - nowMs);
  }
}
