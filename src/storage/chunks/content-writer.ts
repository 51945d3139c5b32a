// The byte part of an upload: gathers slices, writes while more arrive, computes checksums once.
import { GroveError } from "#base/errors.ts";
import { CHUNK_BYTES, FILE_MAX_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { type ChunkChecksums, ContentChecksums } from "./content-checksums.ts";
import { type Gathered, GatheredBytes } from "./gathered-bytes.ts";
import type { UploadShare } from "./upload-budget.ts";

/** Bytes of one upload in flight to the disk before its sender has to wait. */
const UPLOAD_IN_FLIGHT_BYTES = 8_388_608;
/** Complete chunks of one upload that wait for their flush before its sender has to wait. */
const UPLOAD_CHUNKS_FLUSHING = 4;

/** A chunk file under construction. */
export interface GrowingFile {
  /** Appends slices, which must not change until the promise is settled. */
  append(slices: readonly Buffer[], byteCount: number): Promise<void>;
  /** Ends the file with these checksums. Resolves when it is on stable storage. */
  finish(checksums: ChunkChecksums): Promise<void>;
}

/** A chunk with all its bytes. */
export interface WholeChunk<F extends GrowingFile> {
  /** End of the chunk in the content. */
  readonly endBytes: number;
  readonly file: F;
  readonly checksums: ChunkChecksums;
  /** Resolves when the file is on stable storage. */
  readonly durable: Promise<void>;
}

/** How far the writes of one upload may be ahead of what is stable before its sender has to wait. */
export interface ContentAhead {
  readonly bytes: number;
  /** Complete chunks that wait for their flush. */
  readonly chunks: number;
}

const AHEAD_OF_DISK: ContentAhead = { bytes: UPLOAD_IN_FLIGHT_BYTES, chunks: UPLOAD_CHUNKS_FLUSHING };

/** Dependencies of a content writer. */
export interface ContentWriterDeps<F extends GrowingFile> {
  readonly budget: UploadShare;
  /** Bytes of the whole content, where they are known. */
  readonly sizeBytes: number | undefined;
  /** Another measure of what may be under way than that of a local disk. */
  readonly ahead?: ContentAhead;
  /** Begins the file of the chunk at a position. */
  readonly begin: (position: number) => F;
  /** Called with each chunk whose bytes have all been given to its file. */
  readonly ended: (chunk: WholeChunk<F>) => void;
  /** Called with every failed write, flush or close. */
  readonly failed: (error: unknown) => void;
}

/** Whole chunks that are stored already: the content goes on after them. */
export interface ContentStart {
  readonly offsetBytes: number;
  readonly crc32: number;
}

/**
 * Receives content of any length: a small one stays in memory, a larger one becomes chunk files. It decides
 * nothing about uploads. Call `close` once, whatever came of the content.
 */
export class ContentWriter<F extends GrowingFile> {
  readonly #deps: ContentWriterDeps<F>;
  readonly #checksums: ContentChecksums;
  #receivedBytes: number;
  readonly #gathered: GatheredBytes;
  #bytesInFlight = 0;
  #writesInFlight = 0;
  #chunksFlushing = 0;
  #file: F | undefined;
  #nextPosition: number;
  #drained: PromiseWithResolvers<void> | undefined;
  #hasFailed = false;
  #isClosed = false;

  constructor(deps: ContentWriterDeps<F>, start: ContentStart = { offsetBytes: 0, crc32: 0 }) {
    this.#deps = deps;
    this.#checksums = new ContentChecksums(start.crc32);
    this.#receivedBytes = start.offsetBytes;
    this.#nextPosition = start.offsetBytes / CHUNK_BYTES;
    const { budget, sizeBytes = Number.POSITIVE_INFINITY } = deps;
    this.#gathered = new GatheredBytes(budget.buffers, sizeBytes <= INLINE_FILE_MAX_BYTES ? sizeBytes : 0);
    budget.begin();
  }

  /** Bytes of the content so far, with those before its start. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** CRC-32 of all ended chunks. */
  get fileCrc(): number {
    return this.#checksums.fileCrc;
  }

  /** The bytes of a small content. */
  get inline(): Buffer {
    return Buffer.concat(this.#gathered.peek());
  }

  /** Files of chunks that have not ended. */
  get unfinished(): readonly F[] {
    return this.#file === undefined ? [] : [this.#file];
  }

  beginMessage(): void {
    this.#checksums.beginMessage();
  }

  /** CRC-32 of the bytes since beginMessage. */
  endMessage(): number {
    return this.#checksums.endMessage();
  }

  /**
   * Copies a slice. Returns a promise only when the disk is behind: await it. Throws BAD_ARGUMENT for a file
   * that is too large.
   */
  write(slice: Buffer): Promise<void> | undefined {
    if (this.#receivedBytes + slice.length > FILE_MAX_BYTES) {
      throw new GroveError("BAD_ARGUMENT", `a file has at most ${FILE_MAX_BYTES} bytes`, {
        metadata: { limit_bytes: String(FILE_MAX_BYTES) },
      });
    }
    for (let at = 0; at < slice.length; ) {
      const length = Math.min(slice.length - at, CHUNK_BYTES - this.#checksums.chunkLength);
      const piece = length === slice.length ? slice : slice.subarray(at, at + length);
      this.#checksums.update(piece);
      this.#receivedBytes += length;
      this.#gathered.add(piece);
      at += length;
      if (this.#checksums.chunkLength === CHUNK_BYTES) this.#endChunk();
    }
    if (this.#receivedBytes > INLINE_FILE_MAX_BYTES) {
      const { gatherBytes } = this.#deps.budget;
      // While no write of this upload runs, the next one may be small.
      const enough = this.#writesInFlight === 0 ? gatherBytes / 2 : gatherBytes;
      if (this.#gathered.byteCount >= enough) this.#writeGathered(this.#gathered.takeFilled());
    }
    return this.#isAhead() ? this.#untilDrained() : undefined;
  }

  /** Ends the last chunk. */
  end(): void {
    if (this.#receivedBytes <= INLINE_FILE_MAX_BYTES) this.#checksums.endChunk();
    else if (this.#checksums.chunkLength > 0) this.#endChunk();
  }

  /** Drops the gathered bytes, and ends every wait. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#gathered.take().release();
    this.#deps.budget.end();
    this.#drained?.resolve();
  }

  #writeGathered({ slices, byteCount, release }: Gathered): void {
    if (byteCount === 0) return;
    this.#file ??= this.#deps.begin(this.#nextPosition++);
    const write = this.#file.append(slices, byteCount);
    this.#bytesInFlight += byteCount;
    this.#writesInFlight++;
    this.#deps.budget.take(byteCount);
    const landed = (): void => {
      this.#bytesInFlight -= byteCount;
      this.#writesInFlight--;
      release();
      this.#deps.budget.give(byteCount);
      this.#wake();
    };
    write.then(landed, (error: unknown) => {
      this.#fail(error);
      landed();
    });
  }

  #endChunk(): void {
    this.#writeGathered(this.#gathered.take());
    const file = this.#file;
    if (file === undefined) return;
    this.#file = undefined;
    const checksums = this.#checksums.endChunk();
    const durable = file.finish(checksums);
    this.#chunksFlushing++;
    const landed = (): void => {
      this.#chunksFlushing--;
      this.#wake();
    };
    durable.then(landed, (error: unknown) => {
      this.#fail(error);
      landed();
    });
    this.#deps.ended({ endBytes: this.#receivedBytes, file, checksums, durable });
  }

  #isAhead(): boolean {
    const { ahead = AHEAD_OF_DISK, budget } = this.#deps;
    return this.#bytesInFlight > ahead.bytes || this.#chunksFlushing > ahead.chunks || budget.isSpent;
  }

  #untilDrained(): Promise<void> {
    this.#drained ??= Promise.withResolvers<void>();
    if (this.#deps.budget.isSpent) this.#deps.budget.whenFree(this.#wake);
    return this.#drained.promise;
  }

  readonly #wake = (): void => {
    if (this.#drained === undefined) return;
    if (!this.#hasFailed && this.#isAhead()) {
      if (this.#deps.budget.isSpent) this.#deps.budget.whenFree(this.#wake);
      return;
    }
    // The next write throws the error.
    this.#drained.resolve();
    this.#drained = undefined;
  };

  #fail(error: unknown): void {
    this.#hasFailed = true;
    this.#deps.failed(error);
  }
}
