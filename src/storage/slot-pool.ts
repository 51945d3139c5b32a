// Lets a bounded number of operations run at once, the rest in turns of their users.
import { FairQueue } from "#base/fair-queue.ts";

/** So many operations at once; a user's own in the order of their coming. Its line is as long as its callers: they bound themselves. */
export class SlotPool {
  #free: number;
  readonly #line = new FairQueue<() => void>();

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Runs a user's operation as soon as it is its turn; the node's own are those of "". */
  async run<T>(party: string, operation: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#line.push(party, resolve));
    try {
      return await operation();
    } finally {
      const next = this.#line.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
