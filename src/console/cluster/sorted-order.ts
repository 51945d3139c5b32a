// A sorted list that is updated in steps, without sorting unmoved items again.

/** Items that are sorted or merged in one step. */
const STEP = 2_048;

/** An order by a comparison under which no two items are equal. */
export class SortedOrder<Item> {
  readonly #compare: (a: Item, b: Item) => number;
  #items: readonly Item[] = [];

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare;
  }

  /** The items in order. */
  get items(): readonly Item[] {
    return this.#items;
  }

  /**
   * Brings the order up to date: `moved` items are new or compare differently than before, `gone` ones are
   * removed. `items` changes at the end, all at once.
   */
  *update(moved: ReadonlySet<Item>, gone: ReadonlySet<Item>): Generator<void, void> {
    if (moved.size === 0 && gone.size === 0) return;
    const stayed: Item[] = [];
    let steps = 0;
    for (const item of this.#items) {
      if (++steps % STEP === 0) yield;
      if (!moved.has(item) && !gone.has(item)) stayed.push(item);
    }
    const fresh = yield* this.#sorted([...moved]);
    this.#items = yield* this.#merged(stayed, fresh);
  }

  /** Index of the first item for which `isBefore` is false. */
  firstFrom(isBefore: (item: Item) => boolean): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(this.#items[middle] as Item)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  *#sorted(items: readonly Item[]): Generator<void, readonly Item[]> {
    let runs: (readonly Item[])[] = [];
    for (let at = 0; at < items.length; at += STEP) {
      runs.push(items.slice(at, at + STEP).sort(this.#compare));
      yield;
    }
    while (runs.length > 1) {
      const merged: (readonly Item[])[] = [];
      for (let at = 0; at < runs.length; at += 2) {
        merged.push(yield* this.#merged(runs[at] ?? [], runs[at + 1] ?? []));
      }
      runs = merged;
    }
    return runs[0] ?? [];
  }

  *#merged(a: readonly Item[], b: readonly Item[]): Generator<void, readonly Item[]> {
    if (a.length === 0) return b;
    if (b.length === 0) return a;
    const merged: Item[] = [];
    let i = 0;
    let j = 0;
    while (i < a.length && j < b.length) {
      if (merged.length % STEP === STEP - 1) yield;
      const left = a[i] as Item;
      const right = b[j] as Item;
      if (this.#compare(left, right) <= 0) {
        merged.push(left);
        i++;
      } else {
        merged.push(right);
        j++;
      }
    }
    for (; i < a.length; i++) merged.push(a[i] as Item);
    for (; j < b.length; j++) merged.push(b[j] as Item);
    return merged;
  }
}
