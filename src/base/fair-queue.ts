// A queue that serves parties round-robin, so that a party with many items delays mostly its own.

/** Items wait in order within their party; parties take turns. The queue is unbounded: its users bound it. */
export class FairQueue<T> {
  /** In order of turns, the next party first. */
  readonly #waiting = new Map<string, T[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Whether the party has items waiting. */
  has(party: string): boolean {
    return this.#waiting.has(party);
  }

  /** Number of the party's waiting items. */
  sizeOf(party: string): number {
    return this.#waiting.get(party)?.length ?? 0;
  }

  /** Items of the party with the most waiting. */
  longest(): readonly T[] {
    let most: readonly T[] = [];
    for (const own of this.#waiting.values()) if (own.length > most.length) most = own;
    return most;
  }

  push(party: string, item: T): void {
    const own = this.#waiting.get(party);
    if (own === undefined) this.#waiting.set(party, [item]);
    else own.push(item);
    this.#size++;
  }

  /** Takes the first item that `fits` among each party's first; its party moves to the end of the turns. */
  shift(fits: (item: T) => boolean = () => true): T | undefined {
    for (const [party, own] of this.#waiting) {
      const first = own[0] as T;
      if (!fits(first)) continue;
      own.shift();
      this.#size--;
      // A lone party keeps its turn, without the cost of moving it.
      if (own.length === 0) this.#waiting.delete(party);
      else if (this.#waiting.size > 1) {
        this.#waiting.delete(party);
        this.#waiting.set(party, own);
      }
      return first;
    }
    return undefined;
  }

  /** Removes an item that no longer waits; false when it was not there. */
  remove(party: string, item: T): boolean {
    const own = this.#waiting.get(party);
    const at = own?.indexOf(item) ?? -1;
    if (own === undefined || at < 0) return false;
    own.splice(at, 1);
    this.#size--;
    if (own.length === 0) this.#waiting.delete(party);
    return true;
  }
}
