// Decides about one upload: which chunks get rows when, the commit, and what goes away without one.
import { GroveError } from "#base/errors.ts";
import { INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import type { ChunkOutlet, MadeChunk } from "#storage/chunks/chunk-outlet.ts";
import type { ChunkWriter, NewChunk } from "#storage/chunks/chunk-writer.ts";
import type { ChunkChecksums } from "#storage/chunks/content-checksums.ts";
import { ContentWriter, type WholeChunk } from "#storage/chunks/content-writer.ts";
import type { UploadShare } from "#storage/chunks/upload-budget.ts";
import type { ContentElsewhere } from "#storage/contract/content-elsewhere.ts";
import type { Change, UploadTarget } from "#storage/contract/inode.ts";
import type { ResumableSink } from "#storage/contract/upload-store.ts";
import { harmlessFileError, storageFailed } from "#storage/metadata/sqlite-errors.ts";
import type { NewContent } from "#storage/writer/write-commands.ts";
import { DistantContent } from "./distant-content.ts";

/** Finished chunks of one upload that go to the database together before its commit. */
export const UPLOAD_STAGED_CHUNKS = 256;

/** Dependencies of a sink. */
export interface UploadSinkDeps {
  readonly outlet: ChunkOutlet;
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
  /** Where another thread moves the bytes: into files that the outlet makes. */
  readonly elsewhere?: LentFiles | undefined;
}

/** Another thread that moves the bytes, and the files that it is lent. */
export interface LentFiles {
  readonly thread: ContentElsewhere;
  readonly files: ChunkOutlet<ChunkWriter>;
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
  readonly writer: MadeChunk;
  readonly checksums: ChunkChecksums;
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
  readonly #content: ContentWriter<MadeChunk> | DistantContent;
  /** Resumable: bytes that may be staged, since their messages' checksums were right. */
  #acceptedBytes = 0;
  #isStaging = false;
  /** Chunks without rows yet. */
  #finished: FinishedChunk[] = [];
  #contentId: number | undefined;
  #staging: Promise<void> = Promise.resolve();
  #error: Error | undefined;
  #state: "receiving" | "committing" | "complete" | "committed" | "aborted" = "receiving";
  #committing: Promise<unknown> | undefined;

  constructor(deps: UploadSinkDeps, sizeBytes: number | undefined, resume?: ResumePoint) {
    this.#deps = deps;
    this.#sizeBytes = sizeBytes;
    this.#isResumable = resume !== undefined;
    const { outlet, budget, elsewhere } = deps;
    const { ahead } = outlet;
    const said = {
      sizeBytes,
      ended: (chunk: WholeChunk<MadeChunk>) => this.#ended(chunk),
      failed: (error: unknown) => this.#fail(error),
    };
    this.#content =
      elsewhere === undefined
        ? new ContentWriter(
            {
              ...said,
              budget,
              ...(ahead === undefined ? {} : { ahead }),
              begin: (position) => outlet.begin(position),
            },
            resume,
          )
        : new DistantContent(
            { ...said, elsewhere: elsewhere.thread, begin: (position) => elsewhere.files.begin(position) },
            resume,
          );
    this.#contentId = resume?.contentId;
  }

  get receivedBytes(): number {
    return this.#content.receivedBytes;
  }

  beginMessage(): void {
    this.#here.beginMessage();
  }

  write(slice: Buffer): Promise<void> | undefined {
    this.#refuseUnlessReceiving();
    return this.#here.write(slice);
  }

  endMessage(): number {
    return this.#here.endMessage();
  }

  async takeElsewhere(payloadBytes: number): Promise<number> {
    this.#refuseUnlessReceiving();
    if (this.#content instanceof ContentWriter) throw new GroveError("INTERNAL", "the bytes are moved here");
    return this.#content.take(payloadBytes);
  }

  acceptMessage(): void {
    this.#acceptedBytes = this.#content.receivedBytes;
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
    const closing = this.#content.close();
    if (closing !== undefined) await closing;
    return true;
  }

  async #commit(target: UploadTarget): Promise<Change> {
    const content = this.#content;
    const sizeBytes = content.receivedBytes;
    if (this.#state === "receiving") {
      if (this.#sizeBytes !== undefined && this.#sizeBytes !== sizeBytes) {
        throw new GroveError("BAD_ARGUMENT", "the upload is not as long as it was announced");
      }
      this.#state = "committing";
      const ending = content.end();
      if (ending !== undefined) await ending;
      await this.#untilDurable();
      this.#state = "complete";
    }
    const stored: NewContent =
      sizeBytes <= INLINE_FILE_MAX_BYTES
        ? { inline: content.inline }
        : { contentId: this.#contentId, chunks: this.#finished.map(recordOf) };
    const change = await this.#deps.commit(target, { content: stored, sizeBytes, crc32: content.fileCrc });
    this.#state = "committed";
    void content.close();
    this.#deps.outlet.settle(this.#finished.map(({ writer }) => writer));
    this.#finished = [];
    return change;
  }

  get #here(): ContentWriter<MadeChunk> {
    if (this.#content instanceof ContentWriter) return this.#content;
    throw new GroveError("INTERNAL", "another thread moves the bytes");
  }

  #refuseUnlessReceiving(): void {
    if (this.#error !== undefined) throw this.#error;
    const failure = this.#deps.failure();
    if (failure !== undefined) throw storageFailed(failure);
    if (this.#state !== "receiving") throw new GroveError("BAD_ARGUMENT", "the upload has ended");
  }

  #ended({ endBytes, file, checksums, durable }: WholeChunk<MadeChunk>): void {
    this.#finished.push({ endBytes, writer: file, checksums, durable });
    if (!this.#isResumable) {
      if (this.#finished.length >= UPLOAD_STAGED_CHUNKS) this.#stage();
    } else if (this.#state === "receiving" && endBytes <= this.#acceptedBytes && !this.#isStaging) {
      // Another thread reports a chunk once it is written, which may be after its message was accepted. The last
      // one goes with the commit.
      this.#stage();
    }
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
        const writers = chunks.map(({ writer }) => writer);
        await this.#deps.outlet.secure(writers);
        this.#contentId = await this.#deps.stage(this.#contentId, chunks.map(recordOf));
        this.#deps.outlet.settle(writers);
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
        await this.#deps.outlet.secure(this.#finished.map(({ writer }) => writer));
      }
    } catch (error) {
      this.#fail(error);
    }
    if (this.#error !== undefined) throw this.#error;
  }

  /** Removes files without rows. */
  async #discardChunks(): Promise<void> {
    const writers = this.#finished.map(({ writer }) => writer);
    writers.push(...this.#content.unfinished);
    this.#finished = [];
    // A commit whose flush failed may be found done at the next start: then its files must exist.
    const mayUnlink = this.#deps.failure() === undefined;
    const results = await Promise.allSettled(writers.map((writer) => writer.discard(mayUnlink)));
    const gone = writers.filter((_, index) => results[index]?.status === "fulfilled");
    if (mayUnlink) this.#deps.outlet.dropped(gone);
  }

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

function recordOf({ writer, checksums }: FinishedChunk): NewChunk {
  return writer.record(checksums);
}
