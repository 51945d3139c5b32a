// Makes contents of files that a rig can recognise: unique bytes, made at the cost of a copy.
import { crc32 } from "#os/crc32.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";

const POOL_BYTES = 8 * 2 ** 20;
/** A number of its own stands at this interval, so that no two pieces of any contents are alike. */
const MARK_EVERY_BYTES = 4_096;

/** Content of a file. */
export interface Content {
  readonly bytes: Buffer;
  readonly crc32: number;
}

/** Content of given bytes. */
export function contentOf(bytes: Buffer): Content {
  return { bytes, crc32: crc32(bytes) };
}

/** Makes contents. */
export class ContentMaker {
  readonly #pool: Buffer;
  readonly #random: SeededRandom;

  constructor(random: SeededRandom, pool: Buffer = random.bytes(POOL_BYTES)) {
    this.#random = random;
    this.#pool = pool;
  }

  /** Another maker with the same pool, which is the slow part. */
  fork(label: string): ContentMaker {
    return new ContentMaker(this.#random.fork(label), this.#pool);
  }

  /** Makes this many bytes, at most those of the pool. */
  make(length: number): Content {
    const bytes = Buffer.from(this.#pool.subarray(0, length));
    for (let at = 0; at + 4 <= length; at += MARK_EVERY_BYTES)
      bytes.writeUInt32LE(this.#random.below(2 ** 32), at);
    return contentOf(bytes);
  }
}
