// Where new chunks go: files of a local disk here, objects of a store elsewhere.
import type { ChunkStore } from "./chunk-store.ts";
import { ChunkWriter, type NewChunk } from "./chunk-writer.ts";
import type { ChunkChecksums } from "./content-checksums.ts";
import type { ContentAhead, GrowingFile } from "./content-writer.ts";

/** A chunk under construction. */
export interface MadeChunk extends GrowingFile {
  readonly position: number;
  /** Its row, once it is finished. */
  record(checksums: ChunkChecksums): NewChunk;
  /** Ends it without a row; its bytes stay where they may still be needed. */
  discard(mayRemove: boolean): Promise<void>;
}

/** Makes the chunks of one user. */
export interface ChunkOutlet<C extends MadeChunk = MadeChunk> {
  /** How far writes may be ahead; undefined for the measure of a local disk. */
  readonly ahead?: ContentAhead;
  begin(position: number): C;
  /** Resolves when nothing but the chunks' own bytes is missing from stable storage. */
  secure(chunks: readonly C[]): Promise<void>;
  /** Says that the chunks have rows now. */
  settle(chunks: readonly C[]): void;
  /** Says that they were discarded. */
  dropped(chunks: readonly C[]): void;
}

/** Chunks in files. */
export class FileChunks implements ChunkOutlet<ChunkWriter> {
  readonly #store: ChunkStore;
  readonly #by: string;

  constructor(store: ChunkStore, by: string) {
    this.#store = store;
    this.#by = by;
  }

  begin(position: number): ChunkWriter {
    return new ChunkWriter(this.#store, position, this.#by);
  }

  /** The entries of their directories; neither flush needs the other. */
  async secure(chunks: readonly ChunkWriter[]): Promise<void> {
    await Promise.all(chunks.map((chunk) => chunk.named()));
    await this.#store.flushDirectoriesOf(chunks.map(({ name }) => name));
  }

  settle(chunks: readonly ChunkWriter[]): void {
    this.#store.settle(chunks.map(({ name }) => name));
  }

  dropped(chunks: readonly ChunkWriter[]): void {
    this.settle(chunks);
  }
}
