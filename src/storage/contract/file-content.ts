// One pinned version of a file, as readers see it.
import type { Inode } from "./inode.ts";

/** A chunk for a reader in another thread. */
export interface LentChunk {
  /** Start of the chunk in the file. */
  readonly startBytes: number;
  /** Length of the chunk in the file: stored bytes, then zeros. */
  readonly length: number;
  readonly storedLength: number;
  /** One little-endian CRC-32 of four bytes per block of the stored bytes. */
  readonly blockCrcs: Uint8Array;
  /** Undefined for a hole. */
  readonly descriptor: number | undefined;
}

/** What is wrong with a chunk's file; with the code of the system's error where a read failed. */
export interface ChunkFault {
  readonly problem: string;
  readonly code: string | undefined;
}

/** Bytes of a file from `offset` on, up to `end`. */
export interface ByteRange {
  readonly offset: number;
  readonly end: number;
}

/** One pinned version of a file: later changes and removals do not affect its reads. */
export interface FileContent {
  readonly inode: Inode;
  /**
   * Reads from offset to the end of that block (262,144 bytes, aligned within chunks of 4,000,000) or of the
   * file. The bytes were checked against their stored CRC-32; throws CORRUPT instead of returning wrong ones.
   * Bytes from the disk lie in the buffer of BLOCK_BYTES or more that `into` gives, which saves an allocation
   * per block; the caller must not touch it until the promise is settled. In a larger buffer further blocks
   * of the chunk may follow, as many as it holds. A small file's bytes come at once.
   */
  readBlock(offset: number, into?: () => Buffer): Buffer | Promise<Buffer>;
  /** CRC-32 of a range, from stored block checksums and the verified bytes at its edges. Throws CORRUPT. */
  rangeCrc32(offset: number, length: number): number | Promise<number>;
  /** True for a small file, whose bytes lie in the database and not in chunk files. */
  readonly isSmall: boolean;
  /**
   * Lends the file of the chunk around an offset while `use` runs, for another thread that reads it and checks
   * each block. `use` returns the fault that the thread found, if any; then throws CORRUPT, or the refusal of
   * a file that cannot be read for want of something.
   */
  lend(offset: number, use: (chunk: LentChunk) => Promise<ChunkFault | undefined>): Promise<void>;
  /** Unpins. */
  close(): void;
}
