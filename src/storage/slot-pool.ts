// Lets a bounded number of operations run at once, the rest in the order of their coming.

/** So many operations at once. Its line is as long as its callers: they bound themselves. */
export class SlotPool {
  #free: number;
  readonly #line: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Runs the operation as soon as there is a slot. */
  async run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#line.push(resolve));
    try {
      return await operation();
    } finally {
      const next = this.#line.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
