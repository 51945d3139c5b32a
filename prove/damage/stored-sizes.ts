// Sizes of the files that are stored to be damaged: some alike, so that their bytes can be exchanged.
import type { SeededRandom } from "#prove/seeded-random.ts";

/** This many have the same size. */
const EQUAL_SHARE = 3;
const EQUAL_SMALL_BYTES = 1_000;
const EQUAL_LARGE_BYTES = 100_000;
/** Files up to this size are stored without chunks. */
export const SMALL_BYTES = 8_000;
const LARGE_BYTES = [65_537, 300_000] as const;
/** Two chunks. */
const HUGE_BYTES = 4_100_000;

/** How many files of each kind. */
export interface StoreSize {
  readonly small: number;
  readonly large: number;
  readonly huge: number;
}

/** The bytes of each file, the small ones first. */
export function* contentsOf({ small, large, huge }: StoreSize, random: SeededRandom): Generator<Buffer> {
  for (let index = 0; index < small + large + huge; index++) {
    const isEqual = index % EQUAL_SHARE === 0;
    let size: number = HUGE_BYTES;
    if (index < small) size = isEqual ? EQUAL_SMALL_BYTES : random.between(1, SMALL_BYTES);
    else if (index < small + large) size = isEqual ? EQUAL_LARGE_BYTES : random.between(...LARGE_BYTES);
    yield random.bytes(size);
  }
}
