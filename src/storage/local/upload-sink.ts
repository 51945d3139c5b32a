// Receives one upload: gathers slices, writes while more arrive, computes checksums once, commits.
import { GroveError } from "#base/errors.ts";
import { CHUNK_BYTES, FILE_MAX_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import type { ChunkStore } from "#storage/chunks/chunk-store.ts";
import { ChunkWriter, type NewChunk } from "#storage/chunks/chunk-writer.ts";
import { ContentChecksums } from "#storage/chunks/content-checksums.ts";
import { GatheredBytes } from "#storage/chunks/gathered-bytes.ts";
import type { UploadShare } from "#storage/chunks/upload-budget.ts";
import type { Change, UploadTarget } from "#storage/contract/inode.ts";
import type { ResumableSink } from "#storage/contract/upload-store.ts";
import { harmlessFileError, storageFailed } from "#storage/metadata/sqlite-errors.ts";
import type { NewContent } from "#storage/writer/write-commands.ts";

/** Bytes of one upload in flight to the disk before its sender has to wait. */
const UPLOAD_IN_FLIGHT_BYTES = 8_388_608;
/** Complete chunks of one upload that wait for their flush before its sender has to wait. */
const UPLOAD_CHUNKS_FLUSHING = 4;
/** Finished chunks of one upload that go to the database together before its commit. */
export const UPLOAD_STAGED_CHUNKS = 256;

/** Dependencies of a sink. */
export interface UploadSinkDeps {
  readonly store: ChunkStore;
  /** The user who uploads. */
  readonly by: string;
  readonly budget: UploadShare;
  /** Reason for which changes are refused for good. */
  readonly failure: () => string | undefined;
  /** Ends all writing. */
  readonly failed: (reason: string) => void;
  readonly stage: (contentId: number | undefined, chunks: readonly NewChunk[]) => Promise<number>;
  /** Resolves when it is done, or when a failure of the store leaves it to start-up. */
  readonly dropStaged: (contentId: number) => Promise<void>;
  readonly commit: (
    target: UploadTarget,
    content: { content: NewContent; sizeBytes: number; crc32: number },
  ) => Promise<Change>;
}

/** Start of a resumed stream: after the staged whole chunks. */
export interface ResumePoint {
  readonly contentId: number;
  readonly offsetBytes: number;
  readonly crc32: number;
}

interface FinishedChunk {
  /** End of the staged content in the file. */
  readonly endBytes: number;
  readonly writer: ChunkWriter;
  readonly record: NewChunk;
  readonly durable: Promise<void>;
}

/**
 * See UploadSink and ResumableSink. A refused commit (a taken name, a stale access version) may be repeated;
 * otherwise call abort.
 */
export class StagedUpload implements ResumableSink {
  readonly #deps: UploadSinkDeps;
  readonly #sizeBytes: number | undefined;
  readonly #isResumable: boolean;
  readonly #checksums: ContentChecksums;
  #receivedBytes: number;
  /** Resumable: bytes that may be staged, since their messages' checksums were right. */
  #acceptedBytes = 0;
  #isStaging = false;
  readonly #gathered: GatheredBytes;
  #bytesInFlight = 0;
  #writesInFlight = 0;
  #chunksFlushing = 0;
  #writer: ChunkWriter | undefined;
  #nextPosition: number;
  /** Chunks without rows yet. */
  #finished: FinishedChunk[] = [];
  #contentId: number | undefined;
  #staging: Promise<void> = Promise.resolve();
  #drained: PromiseWithResolvers<void> | undefined;
  #error: Error | undefined;
  #state: "receiving" | "committing" | "complete" | "committed" | "aborted" = "receiving";
  #committing: Promise<unknown> | undefined;

  constructor(deps: UploadSinkDeps, sizeBytes: number | undefined, resume?: ResumePoint) {
    this.#deps = deps;
    this.#sizeBytes = sizeBytes;
    this.#isResumable = resume !== undefined;
    this.#checksums = new ContentChecksums(resume?.crc32);
    this.#receivedBytes = resume?.offsetBytes ?? 0;
    this.#nextPosition = this.#receivedBytes / CHUNK_BYTES;
    this.#contentId = resume?.contentId;
    const isSmall = sizeBytes !== undefined && sizeBytes <= INLINE_FILE_MAX_BYTES;
    this.#gathered = new GatheredBytes(deps.budget.buffers, isSmall ? sizeBytes : 0);
    deps.budget.begin();
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  beginMessage(): void {
    this.#checksums.beginMessage();
  }

  write(slice: Buffer): Promise<void> | undefined {
    this.#refuseUnlessReceiving();
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
      if (this.#gathered.byteCount >= enough) this.#writeGathered();
    }
    return this.#isAhead() ? this.#untilDrained() : undefined;
  }

  endMessage(): number {
    return this.#checksums.endMessage();
  }

  acceptMessage(): void {
    this.#acceptedBytes = this.#receivedBytes;
    // In sequence: chunks that are completed meanwhile are staged together.
    if (!this.#isStaging && this.#finished.length > 0) this.#stage();
  }

  async suspend(): Promise<void> {
    if (!(await this.#stopReceiving())) return;
    await this.#staging;
    if (this.#error === undefined) {
      this.#stage();
      await this.#staging;
    }
    await this.#discardChunks();
    if (this.#error !== undefined) throw this.#error;
  }

  async commit(target: UploadTarget): Promise<Change> {
    if (this.#state !== "complete") this.#refuseUnlessReceiving();
    const committing = this.#commit(target);
    this.#committing = committing;
    return committing;
  }

  async abort(): Promise<void> {
    if (!(await this.#stopReceiving())) return;
    await this.#staging.catch(() => undefined);
    await this.#discardChunks();
    if (this.#contentId !== undefined) await this.#deps.dropStaged(this.#contentId);
  }

  /** False when it has ended before: committed, or aborted. */
  async #stopReceiving(): Promise<boolean> {
    await this.#committing?.catch(() => undefined);
    if (this.#state === "committed" || this.#state === "aborted") return false;
    this.#state = "aborted";
    this.#gathered.take().release();
    this.#deps.budget.end();
    this.#drained?.resolve();
    return true;
  }

  async #commit(target: UploadTarget): Promise<Change> {
    if (this.#state === "receiving") {
      if (this.#sizeBytes !== undefined && this.#sizeBytes !== this.#receivedBytes) {
        throw new GroveError("BAD_ARGUMENT", "the upload is not as long as it was announced");
      }
      this.#state = "committing";
      if (this.#receivedBytes <= INLINE_FILE_MAX_BYTES) this.#checksums.endChunk();
      else if (this.#checksums.chunkLength > 0) this.#endChunk();
      await this.#untilDurable();
      this.#state = "complete";
    }
    const content: NewContent =
      this.#receivedBytes <= INLINE_FILE_MAX_BYTES
        ? { inline: Buffer.concat(this.#gathered.peek()) }
        : { contentId: this.#contentId, chunks: this.#finished.map(({ record }) => record) };
    const { fileCrc: crc32 } = this.#checksums;
    const change = await this.#deps.commit(target, { content, sizeBytes: this.#receivedBytes, crc32 });
    this.#state = "committed";
    this.#gathered.take().release();
    this.#deps.budget.end();
    this.#deps.store.settle(this.#finished.map(({ record }) => record.name));
    this.#finished = [];
    return change;
  }

  #refuseUnlessReceiving(): void {
    if (this.#error !== undefined) throw this.#error;
    const failure = this.#deps.failure();
    if (failure !== undefined) throw storageFailed(failure);
    if (this.#state !== "receiving") throw new GroveError("BAD_ARGUMENT", "the upload has ended");
  }

  #writeGathered(): void {
    if (this.#gathered.byteCount === 0) return;
    this.#writer ??= new ChunkWriter(this.#deps.store, this.#nextPosition++, this.#deps.by);
    const { slices, byteCount, release } = this.#gathered.take();
    const write = this.#writer.append(slices, byteCount);
    this.#bytesInFlight += byteCount;
    this.#writesInFlight++;
    this.#deps.budget.take(byteCount);
    const landed = (): void => {
      this.#bytesInFlight -= byteCount;
      this.#writesInFlight--;
      this.#deps.budget.give(byteCount);
      release();
      this.#wake();
    };
    write.then(landed, (error: unknown) => {
      this.#fail(error);
      landed();
    });
  }

  #endChunk(): void {
    this.#writeGathered();
    const writer = this.#writer;
    if (writer === undefined) return;
    this.#writer = undefined;
    const { crc32, blockCrcs } = this.#checksums.endChunk();
    const durable = writer.finish();
    this.#finished.push({
      endBytes: this.#receivedBytes,
      writer,
      record: writer.record(crc32, blockCrcs),
      durable,
    });
    this.#chunksFlushing++;
    const landed = (): void => {
      this.#chunksFlushing--;
      this.#wake();
    };
    durable.then(landed, (error: unknown) => {
      this.#fail(error);
      landed();
    });
    if (!this.#isResumable && this.#finished.length >= UPLOAD_STAGED_CHUNKS) this.#stage();
  }

  /**
   * Gives finished chunks their rows early, so that the commit of a huge file is as short as that of a small
   * one.
   */
  #stage(): void {
    const isReady = ({ endBytes }: FinishedChunk): boolean =>
      !this.#isResumable || endBytes <= this.#acceptedBytes;
    const chunks = this.#finished.filter(isReady);
    if (chunks.length === 0) return;
    this.#finished = this.#finished.filter((chunk) => !isReady(chunk));
    this.#isStaging = true;
    this.#staging = this.#staging.then(async () => {
      try {
        if (this.#error !== undefined) throw this.#error;
        await Promise.all(chunks.map(({ durable }) => durable));
        const names = chunks.map(({ record }) => record.name);
        await this.#deps.store.flushDirectoriesOf(names);
        const records = chunks.map(({ record }) => record);
        this.#contentId = await this.#deps.stage(this.#contentId, records);
        this.#deps.store.settle(names);
      } catch (error) {
        this.#finished.unshift(...chunks);
        this.#fail(error);
      } finally {
        this.#isStaging = false;
      }
      // Chunks that were completed meanwhile.
      if (this.#isResumable && this.#state === "receiving" && this.#error === undefined) this.#stage();
    });
  }

  async #untilDurable(): Promise<void> {
    await this.#staging;
    try {
      await Promise.all(this.#finished.map(({ durable }) => durable));
      if (this.#finished.length > 0) {
        await this.#deps.store.flushDirectoriesOf(this.#finished.map(({ record }) => record.name));
      }
    } catch (error) {
      this.#fail(error);
    }
    if (this.#error !== undefined) throw this.#error;
  }

  /** Removes files without rows. */
  async #discardChunks(): Promise<void> {
    const writers = this.#finished.map(({ writer }) => writer);
    if (this.#writer !== undefined) writers.push(this.#writer);
    this.#finished = [];
    this.#writer = undefined;
    // A commit whose flush failed may be found done at the next start: then its files must exist.
    const mayUnlink = this.#deps.failure() === undefined;
    const results = await Promise.allSettled(writers.map((writer) => writer.discard(mayUnlink)));
    const gone = writers.filter((_, index) => results[index]?.status === "fulfilled");
    if (mayUnlink) this.#deps.store.settle(gone.map(({ name }) => name));
  }

  #isAhead(): boolean {
    return (
      this.#bytesInFlight > UPLOAD_IN_FLIGHT_BYTES ||
      this.#chunksFlushing > UPLOAD_CHUNKS_FLUSHING ||
      this.#deps.budget.isSpent
    );
  }

  #untilDrained(): Promise<void> {
    this.#drained ??= Promise.withResolvers<void>();
    if (this.#deps.budget.isSpent) this.#deps.budget.whenFree(this.#wake);
    return this.#drained.promise;
  }

  readonly #wake = (): void => {
    if (this.#drained === undefined) return;
    if (this.#error === undefined && this.#isAhead()) {
      if (this.#deps.budget.isSpent) this.#deps.budget.whenFree(this.#wake);
      return;
    }
    // The next write throws the error.
    this.#drained.resolve();
    this.#drained = undefined;
  };

  #fail(error: unknown): void {
    if (this.#error !== undefined) return;
    if (error instanceof GroveError) {
      this.#error = error;
      return;
    }
    const harmless = harmlessFileError(error);
    if (harmless === undefined) this.#deps.failed(`writing a chunk file failed: ${String(error)}`);
    this.#error = harmless ?? storageFailed(this.#deps.failure() ?? String(error));
  }
}
