// Chunks of one upload or write on their way to the object store, and their bytes on the way back.
import { BLOCK_BYTES } from "#base/limits.ts";
import type { ChunkOutlet, MadeChunk } from "#storage/chunks/chunk-outlet.ts";
import type { NewChunk } from "#storage/chunks/chunk-writer.ts";
import type { ChunkChecksums } from "#storage/chunks/content-checksums.ts";
import type { ContentAhead } from "#storage/chunks/content-writer.ts";
import type { ChunkBytes } from "#storage/local/pinned-content.ts";
import type { ChunkRecord } from "#storage/metadata/content-records.ts";
import type { ChunkReading } from "#storage/object-store/chunk-reads.ts";
import type { ObjectChunkWriter } from "#storage/object-store/object-chunk-writer.ts";
import { AHEAD_OF_STORE, type ObjectUpload } from "#storage/object-store/object-upload.ts";
import { heldElsewhere } from "#storage/shared/writer-refusals.ts";

/** One chunk of a StoreChunks. */
class StoreChunk implements MadeChunk {
  readonly position: number;
  readonly chunk: ObjectChunkWriter;
  readonly #outlet: StoreChunks;

  constructor(outlet: StoreChunks, chunk: ObjectChunkWriter) {
    this.#outlet = outlet;
    this.chunk = chunk;
    this.position = chunk.position;
  }

  append(slices: readonly Buffer[], byteCount: number): Promise<void> {
    return this.chunk.append(slices, byteCount);
  }

  finish(checksums: ChunkChecksums): Promise<void> {
    return this.chunk.finish(checksums);
  }

  record(checksums: ChunkChecksums): NewChunk {
    // Names of a hold that has ended are swept an hour later, also where the root has come back.
    if (!this.#outlet.isHeld) throw heldElsewhere();
    return this.chunk.record(checksums);
  }

  async discard(mayRemove: boolean): Promise<void> {
    // What may have its row is left to the sweeps of its block, which look for the row first.
    if (mayRemove && !this.#outlet.isUnsure) await this.chunk.discard();
  }
}

/** See ChunkOutlet. */
export class StoreChunks implements ChunkOutlet<StoreChunk> {
  readonly ahead: ContentAhead = AHEAD_OF_STORE;
  readonly upload: ObjectUpload;
  readonly #isUnsure: () => boolean;
  readonly #isHeld: () => boolean;

  /**
   * `isUnsure` is true once it may be unknown whether chunks have their rows, `isHeld` while the root is held under
   * the epoch of their names.
   */
  constructor(upload: ObjectUpload, isUnsure: () => boolean, isHeld: () => boolean) {
    this.upload = upload;
    this.#isUnsure = isUnsure;
    this.#isHeld = isHeld;
  }

  get isUnsure(): boolean {
    return this.#isUnsure() || !this.isHeld;
  }

  get isHeld(): boolean {
    return this.#isHeld();
  }

  begin(position: number): StoreChunk {
    return new StoreChunk(this, this.upload.chunk(position));
  }

  secure(): Promise<void> {
    return Promise.resolve();
  }

  settle(chunks: readonly StoreChunk[]): void {
    for (const { chunk } of chunks) chunk.settle();
  }

  dropped(): void {
    // Their discarding has told it already.
  }
}

/** Reads chunks for one reader. */
export class StoreBytes implements ChunkBytes {
  readonly #reading: ChunkReading;

  constructor(reading: ChunkReading) {
    this.#reading = reading;
  }

  async fill(
    bytes: Buffer,
    chunk: ChunkRecord,
    start: number,
    next: () => readonly ChunkRecord[],
  ): Promise<void> {
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
      const index = (start + at) / BLOCK_BYTES;
      const block = await this.#reading.readBlock(chunk, index, index === 0 ? next : undefined);
      block.copy(bytes, at);
    }
  }

  close(): void {
    this.#reading.close();
  }
}
