// Counts readers of chunks: a chunk's file stays until its last reader has closed, even without its row.

/**
 * The chunk list of one version of a file, shared by its readers; its length is the number of chunks without
 * holes.
 */
export interface ChunkList {
  /** Positions of the chunks in the file, ascending. */
  readonly positions: Float64Array;
  /** Their ids. */
  readonly chunkIds: Float64Array;
  /** True once the checksums of its chunks were found to give the checksum of the file. */
  isChecked?: boolean;
}

interface SharedList extends ChunkList {
  readonly key: string;
  users: number;
}

/** Id of the chunk at a position; undefined in a hole. */
export function chunkIdAt({ positions, chunkIds }: ChunkList, position: number): number | undefined {
  // Without holes before it a chunk is found at once.
  if (positions[position] === position) return chunkIds[position];
  let low = 0;
  for (let high = positions.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((positions[middle] ?? Number.POSITIVE_INFINITY) < position) low = middle + 1;
    else high = middle;
  }
  return positions[low] === position ? chunkIds[low] : undefined;
}

/** Counts readers per chunk. Its size follows the open reads, which callers bound. */
export class ChunkPins {
  readonly #lists = new Map<string, SharedList>();
  readonly #counts = new Map<number, number>();
  #released: (chunkIds: readonly number[]) => void = () => undefined;

  /** Calls back with chunks whose last reader has closed. */
  onReleased(callback: (chunkIds: readonly number[]) => void): void {
    this.#released = callback;
  }

  /** Pins the list under the key, and loads it for the first reader. */
  pin(key: string, load: () => ChunkList): ChunkList {
    const known = this.#lists.get(key);
    if (known !== undefined) {
      known.users++;
      return known;
    }
    const list: SharedList = { ...load(), key, users: 1 };
    this.#lists.set(key, list);
    for (const id of list.chunkIds) this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
    return list;
  }

  /** Ends one use of a list that `pin` returned. */
  unpin(pinned: ChunkList): void {
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
