// Which chunks are being read: their files stay until the last reader has closed, whatever happens to their rows.

/** The chunk list of one version of one file, shared by all who read it. */
export interface PinnedList {
  /** Chunk ids by position; 0 where there is a hole. */
  readonly chunkIds: Float64Array;
}

interface SharedList extends PinnedList {
  readonly key: string;
  users: number;
}

/** Counts readers per chunk. As large as what is being read: callers bound their streams. */
export class ChunkPins {
  readonly #lists = new Map<string, SharedList>();
  readonly #counts = new Map<number, number>();
  #released: (chunkIds: readonly number[]) => void = () => undefined;

  /** Calls back with chunks that nobody reads any more. */
  onReleased(callback: (chunkIds: readonly number[]) => void): void {
    this.#released = callback;
  }

  /** Pins the list that belongs to the key, loading it for the first reader. */
  pin(key: string, load: () => Float64Array): PinnedList {
    const known = this.#lists.get(key);
    if (known !== undefined) {
      known.users++;
      return known;
    }
    const list: SharedList = { key, chunkIds: load(), users: 1 };
    this.#lists.set(key, list);
    for (const id of list.chunkIds) this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
    return list;
  }

  /** Ends one use of a list that `pin` returned. */
  unpin(pinned: PinnedList): void {
    const list = pinned as SharedList;
    if (--list.users > 0) return;
    this.#lists.delete(list.key);
    const released: number[] = [];
    for (const id of list.chunkIds) {
      const count = (this.#counts.get(id) ?? 0) - 1;
      if (count > 0) this.#counts.set(id, count);
      else {
        this.#counts.delete(id);
        released.push(id);
      }
    }
    this.#released(released);
  }

  isPinned(chunkId: number): boolean {
    return this.#counts.has(chunkId);
  }
}
