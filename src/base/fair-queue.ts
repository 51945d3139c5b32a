// A queue that serves its parties in turn: who has put in much waits behind what they put in, and nobody else does.

/** Items wait in the order of their party; parties take turns. Bounding it is for those who fill it. */
export class FairQueue<T> {
  /** The party whose turn is next comes first. */
  readonly #waiting = new Map<string, T[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Whether the party has something waiting. */
  has(party: string): boolean {
    return this.#waiting.has(party);
  }

  /** How much the party has waiting. */
  sizeOf(party: string): number {
    return this.#waiting.get(party)?.length ?? 0;
  }

  /** What the party with the most has waiting. */
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

  /** The first item for which `fits` holds, looking at the first of each party; its party goes to the end of the turns. */
  shift(fits: (item: T) => boolean = () => true): T | undefined {
    for (const [party, own] of this.#waiting) {
      const first = own[0] as T;
      if (!fits(first)) continue;
      own.shift();
      this.#size--;
      this.#waiting.delete(party);
      if (own.length > 0) this.#waiting.set(party, own);
      return first;
    }
    return undefined;
  }

  /** Takes an item out that waits no more; false when it was not there. */
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
