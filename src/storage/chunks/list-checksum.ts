// The checksum of a large file from its list of chunks, which shows lost, added or exchanged chunks.
import { crc32Combine, crc32OfZeros } from "#base/crc32-combine.ts";
import { CHUNK_BYTES } from "#base/limits.ts";

/** A chunk in a file's list. */
export interface ListedChunk {
  readonly position: number;
  readonly length: number;
  readonly crc32: number;
}

/** Takes the chunks of one list in ascending order of their positions. */
export class ListChecksum {
  #crc = 0;
  #end = 0;

  add({ position, length, crc32 }: ListedChunk): void {
    const start = position * CHUNK_BYTES;
    this.#crc = crc32Combine(crcWithZeros(this.#crc, start - this.#end), crc32, length);
    this.#end = start + length;
  }

  /** End of the last chunk in the file, in bytes. */
  get endBytes(): number {
    return this.#end;
  }

  /** CRC-32 of a file of this size, which must be at least endBytes. */
  crcOf(sizeBytes: number): number {
    return crcWithZeros(this.#crc, sizeBytes - this.#end);
  }
}

/** CRC-32 of a range followed by zeros. */
export function crcWithZeros(crc: number, zeroBytes: number): number {
  return crc32Combine(crc, crc32OfZeros(zeroBytes), zeroBytes);
}

/** CRC-32 of two neighbouring ranges, at once where both of theirs are known. */
export function joinCrcs(
  first: number | Promise<number>,
  second: number | Promise<number>,
  secondLength: number,
): number | Promise<number> {
  if (typeof first === "number" && typeof second === "number")
    return crc32Combine(first, second, secondLength);
  return Promise.all([first, second]).then(([before, after]) => crc32Combine(before, after, secondLength));
}
