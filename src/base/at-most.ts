// Bounds for a cache of recent things that holds room only for what is in it.

/** Settings of an LRU cache. */
export interface Bound {
  readonly maxSize: number;
  readonly sizeCalculation: () => number;
}

/**
 * At most so many entries. Said as the sum of their sizes, each being one: a cache that is told a number of entries takes the memory
 * for all of them at once, which for those of a server was 20 ms and 4 MB of every start.
 */
export const atMost = (entries: number): Bound => ({ maxSize: entries, sizeCalculation: () => 1 });
