// How long single calls take within a round of many.
import { percentile } from "./measure.ts";

/** How long single calls took. */
export class TakenTimes {
  readonly #ms: number[] = [];

  /** Runs a call and keeps its time. */
  async of(call: () => Promise<unknown>): Promise<void> {
    const start = performance.now();
    await call();
    this.#ms.push(performance.now() - start);
  }

  /** The time that at most one call in a hundred exceeded. Throws RangeError before the first call. */
  get p99Ms(): number {
    return percentile(this.#ms, 0.99);
  }
}
