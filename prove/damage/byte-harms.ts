// The ways in which the bytes of a chunk are changed, wherever the chunk lies.
import type { SeededRandom } from "#prove/seeded-random.ts";

const SECTOR_BYTES = 512;

/** Changes bytes, in place where it can, and returns those that stand there afterwards. */
export type ByteHarm = (bytes: Buffer, random: SeededRandom) => Buffer;

/** Flips one bit. */
export const flip: ByteHarm = (bytes, random) => {
  const at = random.below(bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
  return bytes;
};

export const zeroSector: ByteHarm = (bytes, random) => {
  const at = random.below(Math.ceil(bytes.length / SECTOR_BYTES)) * SECTOR_BYTES;
  return bytes.fill(0, at, Math.min(at + SECTOR_BYTES, bytes.length));
};

/** Exchanges two sectors; the bytes have more than 120. */
export const exchangeSectors: ByteHarm = (bytes, random) => {
  const one = random.below(60) * SECTOR_BYTES;
  const other = random.between(61, 120) * SECTOR_BYTES;
  const kept = Buffer.from(bytes.subarray(one, one + SECTOR_BYTES));
  bytes.copy(bytes, one, other, other + SECTOR_BYTES);
  kept.copy(bytes, other);
  return bytes;
};

/** Puts a byte in front; the last one goes. */
export const shift: ByteHarm = (bytes) => Buffer.concat([bytes.subarray(0, 1), bytes.subarray(0, -1)]);

export const cutEnd: ByteHarm = (bytes, random) => bytes.subarray(0, random.below(bytes.length));

export const cutLastByte: ByteHarm = (bytes) => bytes.subarray(0, -1);

export const addBytes: ByteHarm = (bytes, random) =>
  Buffer.concat([bytes, random.bytes(random.between(1, 5_000))]);
