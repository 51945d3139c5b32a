// Rows of contents as reads give them.
import type { Inode } from "#storage/contract/inode.ts";

/** An inode and the place of its content. */
export interface ContentRecord {
  readonly inode: Inode;
  readonly contentId: number | undefined;
  /** A small file's bytes, where they were read with it. */
  readonly inline?: Uint8Array | undefined;
}

/** A chunk's row. */
export interface ChunkRecord {
  readonly id: number;
  readonly name: string;
  readonly length: number;
  readonly crc32: number;
  readonly blockCrcs: Uint8Array;
}

/** Positions of a chunk list. */
export interface Positions {
  readonly from: number;
  readonly below: number;
}
