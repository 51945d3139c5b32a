// Writes a range of a file by copy: touched chunks are made anew, so that a crash leaves the old bytes (D15).

import { crc32Replace } from "#base/crc32-combine.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { CHUNK_BYTES, FILE_MAX_BYTES, INLINE_FILE_MAX_BYTES, STALE_ACCESS_RETRIES } from "#base/limits.ts";
import type { ChunkOutlet, MadeChunk } from "#storage/chunks/chunk-outlet.ts";
import type { NewChunk } from "#storage/chunks/chunk-writer.ts";
import { type ChunkChecksums, ContentChecksums } from "#storage/chunks/content-checksums.ts";
import { FairSlots } from "#storage/chunks/fair-slots.ts";
import { crcWithZeros } from "#storage/chunks/list-checksum.ts";
import {
  type ChangeContext,
  type Counted,
  etagOf,
  type Inode,
  type InodeId,
} from "#storage/contract/inode.ts";
import { RowsToCome } from "#storage/contract/rows-to-come.ts";
import type { ChangeReply } from "#storage/metadata/change-messages.ts";
import type { ContentRecord } from "#storage/metadata/content-records.ts";
import { orOvertaken } from "#storage/metadata/followed-path.ts";
import { harmlessFileError, storageFailed } from "#storage/metadata/sqlite-errors.ts";
import type { WriteInlineCommand } from "#storage/writer/write-commands.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";
import { type ContentDeps, PinnedContent } from "./pinned-content.ts";
import { RANGE_WRITES_WAITING, RANGE_WRITES_WAITING_PER_USER, RangeLines } from "./range-lines.ts";
import { cutContent, FileChanged, stageKept } from "./truncation.ts";

/** Ranged writes that make chunks at once; each holds up to three of them in memory. */
export const RANGE_WRITES_AT_ONCE = 4;
/** The same for one user, so that another user's write begins at once. */
export const RANGE_WRITES_AT_ONCE_PER_USER = 3;

/** One ranged write. */
export interface RangeWrite extends ChangeContext {
  readonly fileId: InodeId;
  readonly offset: number;
  readonly data: Uint8Array;
  readonly ifMatch: string | undefined;
}

/** Dependencies of ranged writes. */
export interface RangeWriterDeps {
  readonly content: ContentDeps;
  /** Makes the chunks of one write. */
  readonly outletFor: (write: ChangeContext) => ChunkOutlet;
  readonly queue: Pick<WriteQueue, "failure" | "submit">;
  /** Repeats a drop in the root of a list. */
  readonly drops: { run(drop: () => Promise<unknown>, id: InodeId): Promise<void> };
  /** Ends all writing. */
  readonly failed: (reason: string) => void;
  readonly nowMs: () => number;
}

interface NewContentOfRange {
  readonly chunks: readonly NewChunk[];
  readonly sizeBytes: number;
  readonly crc32: number;
}

/** Runs ranged writes of one file in sequence, those of several files concurrently. */
export class RangeWriter {
  readonly #deps: RangeWriterDeps;
  readonly #lines = new RangeLines();
  readonly #slots = new FairSlots({
    what: "writes",
    slots: RANGE_WRITES_AT_ONCE,
    slotsPerUser: RANGE_WRITES_AT_ONCE_PER_USER,
    waiting: RANGE_WRITES_WAITING,
    waitingPerUser: RANGE_WRITES_WAITING_PER_USER,
  });

  constructor(deps: RangeWriterDeps) {
    this.#deps = deps;
  }

  /** Throws the errors of Storage.writeRange. */
  async write(write: RangeWrite): Promise<Counted<ChangeReply>> {
    const { by, offset, data, fileId } = write;
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + data.length > FILE_MAX_BYTES) {
      throw new GroveError("BAD_ARGUMENT", `a file has at most ${FILE_MAX_BYTES} bytes`, {
        metadata: { limit_bytes: String(FILE_MAX_BYTES) },
      });
    }
    return this.#lines.run(by, fileId, () => this.#writeInTurn(write));
  }

  /** Throws the errors of Storage.setSize. */
  async setSize(
    change: ChangeContext & { fileId: InodeId; sizeBytes: number; ifMatch: string | undefined },
  ): Promise<Counted<ChangeReply>> {
    const { by, sizeBytes, fileId } = change;
    if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0 || sizeBytes > FILE_MAX_BYTES) {
      throw new GroveError("BAD_ARGUMENT", `a file has at most ${FILE_MAX_BYTES} bytes`);
    }
    return this.#lines.run(by, fileId, () => this.#setSizeInTurn(change));
  }

  async #setSizeInTurn(
    change: ChangeContext & { fileId: InodeId; sizeBytes: number; ifMatch: string | undefined },
  ): Promise<Counted<ChangeReply>> {
    const { sizeBytes, ifMatch } = change;
    for (let attempt = 0; attempt <= STALE_ACCESS_RETRIES; attempt++) {
      const record = this.#record(change);
      requireEtag(record, ifMatch);
      const etag = etagOf(record.inode);
      if (sizeBytes < record.inode.sizeBytes) {
        const reply = await this.#slots.run(change.by, () => this.#cut(change));
        if (reply !== undefined) return reply;
        continue;
      }
      // An empty write behind the end: the file grows by a hole.
      const grow = { ...change, offset: sizeBytes, data: new Uint8Array(0), ifMatch: etag };
      try {
        return await this.#writeInTurn(grow);
      } catch (error) {
        if (!(error instanceof GroveError && error.code === "ETAG_MISMATCH")) throw error;
      }
    }
    throw new GroveError("OVERLOADED", "the file is being replaced all the time; try again");
  }

  /** Undefined when the file no longer needs a cut, or was replaced meanwhile. */
  async #cut(
    change: ChangeContext & { fileId: InodeId; sizeBytes: number; ifMatch: string | undefined },
  ): Promise<Counted<ChangeReply> | undefined> {
    const { owner, by, maxInodes, maxAddedBytes, sizeBytes, ifMatch } = change;
    const { queue, drops, content: deps } = this.#deps;
    const outlet = this.#deps.outletFor(change);
    // The content may have changed during the wait for a slot: it is that of the row read with it.
    const record = this.#record(change);
    if (sizeBytes >= record.inode.sizeBytes) return undefined;
    requireEtag(record, ifMatch);
    const file = { deps, record, sizeBytes, isOwn: by === owner };
    const writers: MadeChunk[] = [];
    let staged: number | undefined;
    let isCommitted = false;
    try {
      const { content, crc32 } = await cutContent(file, { outlet, writers }).catch((error: unknown) => {
        const isPlain =
          error instanceof GroveError || error instanceof FileChanged || error instanceof RowsToCome;
        throw isPlain ? error : this.#fileError(error);
      });
      const access = accessOf(change);
      const expectedVersion = record.inode.version;
      const fields = () => ({ ...access, expectedVersion, nowMs: this.#deps.nowMs() });
      await stageKept(
        file,
        content,
        (slice) => queue.submit({ op: "stageKept", ...fields(), ...slice }),
        (contentId) => {
          staged = contentId;
        },
      );
      const kept = "inline" in content ? content : { ...content, contentId: staged };
      const cut = { ...fields(), maxInodes, maxAddedBytes, sizeBytes, crc32, content: kept };
      const reply = await queue.submit({ op: "truncate", ...cut });
      isCommitted = reply !== undefined;
      return reply;
    } catch (error) {
      if (error instanceof FileChanged) return undefined;
      throw error;
    } finally {
      await this.#settle(writers, isCommitted, outlet);
      const contentId = isCommitted ? undefined : staged;
      if (contentId !== undefined)
        await drops.run(() => queue.submit({ op: "dropStaged", contentId }), contentId);
    }
  }

  #record({ fileId, at }: ChangeContext & { readonly fileId: InodeId }): ContentRecord {
    try {
      return this.#deps.content.reader.file(fileId);
    } catch (error) {
      throw orOvertaken(error, at);
    }
  }

  async #writeInTurn(write: RangeWrite): Promise<Counted<ChangeReply>> {
    const { offset, data, ifMatch, by, maxAddedBytes } = write;
    for (let attempt = 0; attempt <= STALE_ACCESS_RETRIES; attempt++) {
      const nowMs = this.#deps.nowMs();
      const change = { ...accessOf(write), maxAddedBytes, nowMs };
      const record = this.#record(write);
      const reply = endsSmall(record, write)
        ? await this.#writeInline({ op: "writeInline", ...change, offset, data, ifMatch }, record.inode)
        : await this.#slots.run(by, () => this.#writeChunks(write, nowMs));
      if (reply !== undefined) return reply;
      // The file was replaced meanwhile: the same write applies to its new content.
    }
    throw new GroveError("OVERLOADED", "the file is being replaced all the time; try again");
  }

  async #writeInline(command: WriteInlineCommand, inode: Inode): Promise<Counted<ChangeReply> | undefined> {
    const { queue, content } = this.#deps;
    try {
      return await queue.submit<"writeInline">(command);
    } catch (error) {
      if (isGroveError(error, "CORRUPT") && !inode.damaged)
        content.damaged(inode, "a small file does not match its checksum", undefined);
      throw error;
    }
  }

  /** Undefined when the file has become small, or was replaced meanwhile. */
  async #writeChunks(write: RangeWrite, nowMs: number): Promise<Counted<ChangeReply> | undefined> {
    const { maxAddedBytes, ifMatch } = write;
    const { queue, content: deps } = this.#deps;
    const outlet = this.#deps.outletFor(write);
    const record = this.#record(write);
    if (endsSmall(record, write)) return undefined;
    requireEtag(record, ifMatch);
    const { offset, data } = write;
    const content = new PinnedContent(deps, record, { offset, end: offset + data.length });
    const writers: MadeChunk[] = [];
    let isCommitted = false;
    try {
      const made = await this.#makeChunks(write, content, { outlet, writers });
      const expectedVersion = record.inode.version;
      const change = { ...accessOf(write), maxAddedBytes, nowMs, expectedVersion };
      const reply = await queue.submit({ op: "writeChunks", ...change, ...made });
      isCommitted = reply !== undefined;
      return reply;
    } finally {
      content.close();
      await this.#settle(writers, isCommitted, outlet);
    }
  }

  async #makeChunks(
    { offset, data }: RangeWrite,
    content: PinnedContent,
    { outlet, writers }: { readonly outlet: ChunkOutlet; readonly writers: MadeChunk[] },
  ): Promise<NewContentOfRange> {
    const oldSize = content.inode.sizeBytes;
    const sizeBytes = Math.max(oldSize, offset + data.length);
    let crc = crcWithZeros(content.inode.crc32, sizeBytes - oldSize);
    const made: { writer: MadeChunk; end: ChunkChecksums }[] = [];
    for (const position of touchedPositions(offset, data.length, oldSize)) {
      const start = position * CHUNK_BYTES;
      // Created while the old bytes are read.
      const writer = outlet.begin(position);
      writers.push(writer);
      const bytes = await mergedChunk(content, position, offset, data);
      const checksums = new ContentChecksums();
      checksums.update(bytes);
      const end = checksums.endChunk();
      const span = Math.min(CHUNK_BYTES, sizeBytes - start);
      const old = storedPart(content, position);
      crc = crc32Replace(
        crc,
        crcWithZeros(old.crc32, span - old.length),
        crcWithZeros(end.crc32, span - bytes.length),
        sizeBytes - start - span,
      );
      writer.append([bytes], bytes.length).catch(() => undefined);
      made.push({ writer, end });
    }
    try {
      await Promise.all([outlet.secure(writers), ...made.map(({ writer, end }) => writer.finish(end))]);
    } catch (error) {
      throw this.#fileError(error);
    }
    return { chunks: made.map(({ writer, end }) => writer.record(end)), sizeBytes, crc32: crc };
  }

  #fileError(error: unknown): GroveError {
    const harmless = harmlessFileError(error);
    if (harmless === undefined) this.#deps.failed(`writing a chunk file failed: ${String(error)}`);
    return harmless ?? storageFailed(this.#deps.queue.failure ?? String(error));
  }

  async #settle(writers: readonly MadeChunk[], isCommitted: boolean, outlet: ChunkOutlet): Promise<void> {
    if (isCommitted) {
      outlet.settle(writers);
      return;
    }
    // Chunks that a failed writer has received may be found committed at the next start.
    const mayUnlink = this.#deps.queue.failure === undefined;
    const results = await Promise.allSettled(writers.map((writer) => writer.discard(mayUnlink)));
    if (!mayUnlink || results.some(({ status }) => status === "rejected")) return;
    outlet.dropped(writers);
  }
}

/** What each command of a change takes over from it: which file, and what its check has seen. */
function accessOf(
  change: ChangeContext & { readonly fileId: InodeId },
): Pick<WriteInlineCommand, "accessVersion" | "at" | "by" | "fileId" | "lockVersion" | "owner"> {
  const { owner, accessVersion, lockVersion, by, at, fileId } = change;
  return { owner, accessVersion, lockVersion, by, at, fileId };
}

/** True when the file stays small with the write. */
function endsSmall({ inode }: ContentRecord, { offset, data }: RangeWrite): boolean {
  return Math.max(inode.sizeBytes, offset + data.length) <= INLINE_FILE_MAX_BYTES;
}

/** Throws ETAG_MISMATCH unless the file has the wanted etag, if one is given. */
function requireEtag({ inode }: ContentRecord, ifMatch: string | undefined): void {
  const etag = etagOf(inode);
  if (ifMatch === undefined || ifMatch === etag) return;
  throw new GroveError("ETAG_MISMATCH", "the file is not at the expected version any more", {
    metadata: { etag },
  });
}

/**
 * Chunks that a write touches (none when it has no bytes and only grows the file), and the first one when a
 * small file becomes a large one.
 */
function touchedPositions(offset: number, length: number, oldSize: number): number[] {
  const positions: number[] = [];
  const first = Math.floor(offset / CHUNK_BYTES);
  if (oldSize > 0 && oldSize <= INLINE_FILE_MAX_BYTES && (first > 0 || length === 0)) positions.push(0);
  if (length === 0) return positions;
  for (let position = first; position * CHUNK_BYTES < offset + length; position++) positions.push(position);
  return positions;
}

/** The stored part of a chunk's span. */
function storedPart(content: PinnedContent, position: number): { length: number; crc32: number } {
  const { sizeBytes, crc32 } = content.inode;
  if (sizeBytes <= INLINE_FILE_MAX_BYTES)
    return position === 0 ? { length: sizeBytes, crc32 } : { length: 0, crc32: 0 };
  return content.storedChunk(position) ?? { length: 0, crc32: 0 };
}

/** The chunk's bytes after the write, the old ones verified; a trailing hole is left out. */
async function mergedChunk(
  content: PinnedContent,
  position: number,
  offset: number,
  data: Uint8Array,
): Promise<Buffer> {
  const start = position * CHUNK_BYTES;
  const from = Math.max(offset, start);
  const to = Math.min(offset + data.length, start + CHUNK_BYTES);
  const old = storedPart(content, position);
  // The first chunk of a formerly small file may lie before the range.
  const writtenEnd = to > from ? to - start : 0;
  const bytes = Buffer.alloc(Math.max(old.length, writtenEnd));
  const isCovered = from === start && writtenEnd >= old.length;
  if (!isCovered && old.length > 0) await content.readChunk(position, bytes);
  if (writtenEnd > 0) bytes.set(data.subarray(from - offset, to - offset), from - start);
  return bytes;
}
