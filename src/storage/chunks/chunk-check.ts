// Compares one chunk file with its row: length, checksum of every block, and agreement of the checksums.
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { BLOCK_BYTES } from "#base/limits.ts";
import { crc32 } from "#os/crc32.ts";
import { crcOfBlocks } from "./content-checksums.ts";
import { lacksDescriptors } from "./lacks-descriptors.ts";

/** A chunk's row. */
export interface ChunkFacts {
  readonly length: number;
  readonly crc32: number;
  readonly blockCrcs: Uint8Array;
}

/** Says why the checksums in a chunk's row contradict each other; undefined when they agree. */
export function checksumProblem({ blockCrcs, length, crc32: whole }: ChunkFacts): string | undefined {
  if (blockCrcs.byteLength !== Math.ceil(length / BLOCK_BYTES) * 4) return "has not one checksum per block";
  return crcOfBlocks(blockCrcsOf(blockCrcs), length) === whole
    ? undefined
    : "has checksums that do not fit together";
}

/** Says what is wrong with the length of a chunk's file. */
export function lengthProblem(path: string, length: number): string | undefined {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file === undefined) return "has no file";
  return file.size === length ? undefined : `has a file of ${file.size} bytes instead of ${length}`;
}

/**
 * Reads a chunk's file block by block and compares it; yields the bytes read after each block. Returns what
 * is wrong. Throws only when the file cannot be opened for want of descriptors or memory.
 */
export function* blockProblems(path: string, facts: ChunkFacts): Generator<number, string | undefined> {
  const crcs = blockCrcsOf(facts.blockCrcs);
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (lacksDescriptors(error) || code === "ENOMEM") throw error;
    return code === "ENOENT" ? "has no file" : `cannot be read: ${String(error)}`;
  }
  try {
    const block = Buffer.allocUnsafe(BLOCK_BYTES);
    for (const [index, crc] of crcs.entries()) {
      const wanted = Math.min(BLOCK_BYTES, facts.length - index * BLOCK_BYTES);
      const got = readBlock(descriptor, block, wanted, index * BLOCK_BYTES);
      if (typeof got === "string") return got;
      if (got < wanted) return `has a file that ends in block ${index}`;
      if (crc32(block.subarray(0, got)) !== crc) return `does not match its checksum in block ${index}`;
      yield got;
    }
    return undefined;
  } finally {
    closeSync(descriptor);
  }
}

/** Says what is wrong with the bytes of a chunk's file. */
export function bytesProblem(path: string, facts: ChunkFacts): string | undefined {
  const blocks = blockProblems(path, facts);
  for (;;) {
    const { done, value } = blocks.next();
    if (done === true) return value;
  }
}

function readBlock(descriptor: number, block: Buffer, wanted: number, position: number): number | string {
  try {
    let got = 0;
    while (got < wanted) {
      const more = readSync(descriptor, block, got, wanted - got, position + got);
      if (more === 0) break;
      got += more;
    }
    return got;
  } catch (error) {
    return `cannot be read: ${String(error)}`;
  }
}

function blockCrcsOf(blockCrcs: Uint8Array): number[] {
  const view = new DataView(blockCrcs.buffer, blockCrcs.byteOffset, blockCrcs.byteLength);
  return Array.from({ length: Math.floor(blockCrcs.byteLength / 4) }, (_, index) =>
    view.getUint32(index * 4, true),
  );
}
