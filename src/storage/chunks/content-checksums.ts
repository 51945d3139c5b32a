// Checksums of arriving content: each byte is read once for its message, block, chunk and file.

import { crc32Combine } from "#base/crc32-combine.ts";
import { BLOCK_BYTES } from "#base/limits.ts";
import { crc32 } from "#os/crc32.ts";

/** CRC-32 of a chunk and of each of its blocks. */
export interface ChunkChecksums {
  readonly crc32: number;
  readonly blockCrcs: readonly number[];
}

/** Computes all checksums in one run over the content. Slices must not cross the end of a chunk. */
export class ContentChecksums {
  #fileCrc: number;
  #chunkLength = 0;
  #blockLength = 0;
  /** CRC-32 of the block so far, without the current segment. */
  #blockCrc = 0;
  #blockCrcs: number[] = [];
  #messageCrc = 0;
  /** CRC-32 of the bytes since the last border of a block or message. */
  #segmentCrc = 0;
  #segmentLength = 0;

  /** Continues after whole chunks with this checksum. */
  constructor(fileCrc = 0) {
    this.#fileCrc = fileCrc;
  }

  /** Bytes of the current chunk so far. */
  get chunkLength(): number {
    return this.#chunkLength;
  }

  /** Takes a slice, at most up to the end of the chunk. */
  update(slice: Buffer): void {
    for (let at = 0; at < slice.length; ) {
      const length = Math.min(slice.length - at, BLOCK_BYTES - this.#blockLength);
      const piece = length === slice.length ? slice : slice.subarray(at, at + length);
      this.#segmentCrc = crc32(piece, this.#segmentCrc);
      this.#segmentLength += length;
      this.#blockLength += length;
      this.#chunkLength += length;
      at += length;
      if (this.#blockLength === BLOCK_BYTES) this.#endBlock();
    }
  }

  beginMessage(): void {
    this.#endSegment();
    this.#messageCrc = 0;
  }

  /** CRC-32 of the bytes since beginMessage. */
  endMessage(): number {
    this.#endSegment();
    return this.#messageCrc;
  }

  /** Ends the chunk, full or not. */
  endChunk(): ChunkChecksums {
    if (this.#blockLength > 0) this.#endBlock();
    const blockCrcs = this.#blockCrcs;
    const chunkCrc = crcOfBlocks(blockCrcs, this.#chunkLength);
    this.#fileCrc = crc32Combine(this.#fileCrc, chunkCrc, this.#chunkLength);
    this.#blockCrcs = [];
    this.#chunkLength = 0;
    return { crc32: chunkCrc, blockCrcs };
  }

  /** CRC-32 of all ended chunks. */
  get fileCrc(): number {
    return this.#fileCrc;
  }

  #endBlock(): void {
    this.#endSegment();
    this.#blockCrcs.push(this.#blockCrc);
    this.#blockCrc = 0;
    this.#blockLength = 0;
  }

  #endSegment(): void {
    this.#blockCrc = crc32Combine(this.#blockCrc, this.#segmentCrc, this.#segmentLength);
    this.#messageCrc = crc32Combine(this.#messageCrc, this.#segmentCrc, this.#segmentLength);
    this.#segmentCrc = 0;
    this.#segmentLength = 0;
  }
}

/** CRC-32 of a chunk from those of its blocks. */
export function crcOfBlocks(blockCrcs: readonly number[], chunkLength: number): number {
  let crc = 0;
  for (const [index, blockCrc] of blockCrcs.entries()) {
    crc = crc32Combine(crc, blockCrc, Math.min(BLOCK_BYTES, chunkLength - index * BLOCK_BYTES));
  }
  return crc;
}
