// One upload on its way to the object store: its chunks, and when its sender has to wait.
import { CHUNK_BYTES } from "#base/limits.ts";
import type { ContentAhead } from "#storage/chunks/content-writer.ts";
import { FairSlots } from "#storage/chunks/fair-slots.ts";
import { UPLOAD_GATHER_MIN_BYTES, type UploadShare } from "#storage/chunks/upload-budget.ts";
import type { WriteBuffers } from "#storage/chunks/write-buffers.ts";
import type { ChunkNamesOfRoot } from "./chunk-names-of-root.ts";
import { type ChunkPuts, ObjectChunkWriter } from "./object-chunk-writer.ts";

/** Chunks of one upload that are put at once. */
export const PUTS_AT_ONCE_PER_UPLOAD = 4;

/** For the content writer of an upload: four whole chunks on their way, and one that gathers and waits for them. */
export const AHEAD_OF_STORE: ContentAhead = {
  bytes: (PUTS_AT_ONCE_PER_UPLOAD + 1) * CHUNK_BYTES,
  chunks: PUTS_AT_ONCE_PER_UPLOAD,
};

/** Makes the chunks of one upload, and is its share of the budget. */
export class ObjectUpload implements UploadShare {
  readonly buffers: WriteBuffers;
  /** Every chunk has its own place, so that a buffer is as much as need be gathered. */
  readonly gatherBytes: number = 2 * UPLOAD_GATHER_MIN_BYTES;
  readonly #puts: ChunkPuts;
  readonly #names: ChunkNamesOfRoot;
  readonly #user: string;
  readonly #sizeBytes: number | undefined;
  readonly #turns = new FairSlots({ what: "chunks of one upload", slots: PUTS_AT_ONCE_PER_UPLOAD });
  #chunksWaiting = 0;
  #wake: (() => void) | undefined;

  constructor(deps: {
    puts: ChunkPuts;
    names: ChunkNamesOfRoot;
    user: string;
    /** Undefined where it is not known. */
    sizeBytes: number | undefined;
  }) {
    this.#puts = deps.puts;
    this.#names = deps.names;
    this.#user = deps.user;
    this.#sizeBytes = deps.sizeBytes;
    this.buffers = deps.puts.buffers;
  }

  /** True while the chunk that gathers has no place yet. */
  get isSpent(): boolean {
    return this.#chunksWaiting > 0;
  }

  begin(): void {
    // Nothing is shared among uploads.
  }

  /** Begins the chunk at a position. */
  chunk(position: number): ObjectChunkWriter {
    const rest = (this.#sizeBytes ?? Number.POSITIVE_INFINITY) - position * CHUNK_BYTES;
    const writer = new ObjectChunkWriter({
      puts: this.#puts,
      names: this.#names,
      turns: this.#turns,
      user: this.#user,
      position,
      maxBytes: rest > 0 ? Math.min(CHUNK_BYTES, rest) : CHUNK_BYTES,
    });
    this.#chunksWaiting++;
    void writer.placed.then(() => {
      this.#chunksWaiting--;
      if (this.isSpent) return;
      const wake = this.#wake;
      this.#wake = undefined;
      wake?.();
    });
    return writer;
  }

  end(): void {
    this.#wake = undefined;
  }

  take(): void {
    // The chunk's place counts for its bytes.
  }

  give(): void {
    // As above.
  }

  whenFree(wake: () => void): void {
    this.#wake = wake;
  }
}
