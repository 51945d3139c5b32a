// Reads one version of a file block by block; bytes that do not match their checksum are refused.
import { read } from "node:fs";
import { promisify } from "node:util";
import { GroveError, isGroveError } from "#base/errors.ts";
import { BLOCK_BYTES, CHUNK_BYTES } from "#base/limits.ts";
import { crc32 } from "#os/crc32.ts";
import { type ChunkList, type ChunkPins, chunkIdAt } from "#storage/chunks/chunk-pins.ts";
import { crcWithZeros, joinCrcs, ListChecksum } from "#storage/chunks/list-checksum.ts";
import type { OpenChunkFiles } from "#storage/chunks/open-chunk-files.ts";
import type { ByteRange, ChunkFault, FileContent, LentChunk } from "#storage/contract/file-content.ts";
import type { Inode, InodeId } from "#storage/contract/inode.ts";
import { RowsToCome, whenRowsAreHere } from "#storage/contract/rows-to-come.ts";
import type { ChunkRecord, ContentRecord, Positions } from "#storage/metadata/content-records.ts";
import { damagedText } from "#storage/metadata/damage-rows.ts";
import type { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import { harmlessFileError } from "#storage/metadata/sqlite-errors.ts";
import { LIST_CHECK_CHUNKS, windowOf } from "./list-window.ts";

const readBytes = promisify(read);

/** Dependencies of reads. */
export interface ContentDeps {
  readonly reader: Pick<SnapshotReader, "chunkList" | "file" | "inline"> & {
    /** A chunk in the list of a file. */
    chunk(id: number, fileId: InodeId): ChunkRecord | undefined;
  };
  readonly files: Pick<OpenChunkFiles, "use">;
  /** Opens what reads chunks that lie elsewhere than in files. */
  readonly elsewhere?: ((inode: Inode) => ChunkBytes) | undefined;
  readonly pins: ChunkPins;
  /**
   * Called when stored bytes do not match their checksum; with their chunk, unless they lie in the database.
   */
  readonly damaged: (inode: Inode, problem: string, chunkId: number | undefined) => void;
}

/** Stored bytes of chunks, for one reader. Throws GroveError. */
export interface ChunkBytes {
  /** Fills a buffer from the start of a block on, with checked bytes. */
  fill(bytes: Buffer, chunk: ChunkRecord, start: number, next: () => readonly ChunkRecord[]): Promise<void>;
  close(): void;
}

/** A range of the content: one block of one chunk, or of a hole. */
interface Block {
  readonly chunk: ChunkRecord | undefined;
  /** Start of the block within the chunk. */
  readonly start: number;
  readonly length: number;
  /** Stored bytes of the block; the rest is zeros. */
  readonly storedLength: number;
  readonly storedCrc: number;
  /** Stored bytes from the start of the block to the end of its chunk. */
  readonly storedToEnd: number;
}

/** See FileContent. */
export class PinnedContent implements FileContent {
  readonly inode: Inode;
  readonly #deps: ContentDeps;
  readonly #pinned: ChunkList | undefined;
  /** Positions that the pinned list is about; undefined for all. */
  readonly #within: Positions | undefined;
  readonly #elsewhere: ChunkBytes | undefined;
  #inline: Buffer | undefined;
  #isInlineChecked = false;
  #isClosed = false;
  #isReported = false;
  #lastChunk: ChunkRecord | undefined;

  constructor(deps: ContentDeps, { inode, contentId, inline }: ContentRecord, range?: ByteRange) {
    this.inode = inode;
    this.#deps = deps;
    if (contentId === undefined) {
      const bytes = inode.sizeBytes === 0 ? new Uint8Array(0) : (inline ?? deps.reader.inline(inode.id));
      this.#inline = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      return;
    }
    // A ranged write changes a list in place, and the trash may give a list to another inode, whose versions
    // start again.
    const within = windowOf(inode.sizeBytes, range);
    const key = [inode.id, inode.version, ...(within === undefined ? [] : [within.from, within.below])].join(
      "-",
    );
    this.#within = within;
    this.#pinned = deps.pins.pin(key, () => deps.reader.chunkList(contentId, within));
    this.#elsewhere = deps.elsewhere?.(inode);
  }

  readBlock(offset: number, into?: () => Buffer): Buffer | Promise<Buffer> {
    this.#refuseOutside(offset, 0);
    this.#refuseDamaged();
    if (offset >= this.inode.sizeBytes)
      throw new GroveError("BAD_ARGUMENT", "the offset is behind the file's end");
    if (this.#inline !== undefined) return this.#checkedInline().subarray(offset);
    return this.#readStored(offset, into);
  }

  async #readStored(offset: number, into: (() => Buffer) | undefined): Promise<Buffer> {
    const found = whenRowsAreHere(() => {
      this.#checkList();
      return this.#blockAt(offset);
    });
    const block = found instanceof Promise ? await found : found;
    const { chunk } = block;
    const room = block.storedLength === block.length ? into?.() : undefined;
    const bytes =
      chunk === undefined || room === undefined || room.length < 2 * BLOCK_BYTES
        ? await this.#read(block, room)
        : await this.#readRun(chunk, block, room);
    return bytes.subarray((offset % CHUNK_BYTES) - block.start);
  }

  /** Reads a block and those behind it in its chunk, as many as the buffer holds, by one call. */
  async #readRun(chunk: ChunkRecord, { start, storedToEnd }: Block, room: Buffer): Promise<Buffer> {
    const bytes = room.subarray(0, Math.min(storedToEnd, room.length - (room.length % BLOCK_BYTES)));
    await this.#fillBlocks(bytes, chunk, start);
    return bytes;
  }

  /** Fills a buffer with whole blocks of a chunk, the last of which may be its end, and verifies each. */
  async #fillBlocks(bytes: Buffer, chunk: ChunkRecord, start: number): Promise<void> {
    await this.#fill(bytes, chunk, start);
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
      const crc = this.#blockCrc(chunk, (start + at) / BLOCK_BYTES);
      this.#verify(bytes.subarray(at, at + BLOCK_BYTES), crc, chunk);
    }
  }

  /**
   * Reads the stored bytes of a chunk, or of a small file, into the front of a buffer and verifies them, for
   * a rewrite.
   */
  async readChunk(position: number, into: Buffer): Promise<void> {
    this.#refuseDamaged();
    if (this.#inline !== undefined) {
      this.#checkedInline().copy(into);
      return;
    }
    this.#checkList();
    const chunk = this.#chunkAt(position);
    if (chunk === undefined) return;
    await this.#fillBlocks(into.subarray(0, chunk.length), chunk, 0);
  }

  rangeCrc32(offset: number, length: number): number | Promise<number> {
    this.#refuseOutside(offset, length);
    this.#refuseDamaged();
    return whenRowsAreHere(() => this.#crcOf(offset, length));
  }

  #crcOf(offset: number, length: number): number | Promise<number> {
    if (this.#inline !== undefined) {
      const bytes = this.#checkedInline();
      return length === bytes.length ? this.inode.crc32 : crc32(bytes.subarray(offset, offset + length));
    }
    this.#checkList();
    if (offset === 0 && length === this.inode.sizeBytes) return this.inode.crc32;
    let crc: number | Promise<number> = 0;
    for (let at = offset; at < offset + length; ) {
      const part = this.#crcFrom(at, offset + length);
      crc = joinCrcs(crc, part.crc, part.length);
      at += part.length;
    }
    return crc;
  }

  get isSmall(): boolean {
    return this.#pinned === undefined;
  }

  async lend(offset: number, use: (chunk: LentChunk) => Promise<ChunkFault | undefined>): Promise<void> {
    this.#refuseOutside(offset, 0);
    this.#refuseDamaged();
    this.#checkList();
    const position = Math.floor(offset / CHUNK_BYTES);
    const startBytes = position * CHUNK_BYTES;
    const length = Math.min(CHUNK_BYTES, this.inode.sizeBytes - startBytes);
    const chunk = this.#chunkAt(position);
    if (chunk === undefined) {
      await use({ startBytes, length, storedLength: 0, blockCrcs: new Uint8Array(0), descriptor: undefined });
      return;
    }
    const { length: storedLength, blockCrcs } = chunk;
    if (blockCrcs.byteLength < Math.ceil(storedLength / BLOCK_BYTES) * 4)
      throw this.#corrupt("a checksum is missing", chunk);
    const fault = await this.#lendFile(chunk, (descriptor) =>
      use({ startBytes, length, storedLength, blockCrcs, descriptor }),
    );
    if (fault === undefined) return;
    const cause = Object.assign(new Error(fault.problem), { code: fault.code });
    throw harmlessFileError(cause) ?? this.#corrupt(fault.problem, chunk, cause);
  }

  async #lendFile<T>(chunk: ChunkRecord, use: (descriptor: number) => Promise<T>): Promise<T> {
    let isOpen = false;
    try {
      return await this.#deps.files.use(chunk.name, (descriptor) => {
        isOpen = true;
        return use(descriptor);
      });
    } catch (error) {
      if (isOpen) throw error;
      throw harmlessFileError(error) ?? this.#corrupt("a chunk file cannot be read", chunk, error);
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#inline = undefined;
    this.#lastChunk = undefined;
    if (this.#pinned !== undefined) this.#deps.pins.unpin(this.#pinned);
    this.#elsewhere?.close();
  }

  /**
   * A chunk's stored bytes and checksum, without the zeros after them, for a rewrite; undefined for a hole.
   */
  storedChunk(position: number): ChunkRecord | undefined {
    return this.#chunkAt(position);
  }

  /** CRC-32 from an offset to the end of its chunk or block, or of the range. */
  #crcFrom(offset: number, end: number): { crc: number | Promise<number>; length: number } {
    const within = offset % CHUNK_BYTES;
    const chunkLength = Math.min(CHUNK_BYTES, this.inode.sizeBytes - (offset - within));
    if (within === 0 && end - offset >= chunkLength) {
      const chunk = this.#chunkAt(Math.floor(offset / CHUNK_BYTES));
      return {
        crc: crcWithZeros(chunk?.crc32 ?? 0, chunkLength - (chunk?.length ?? 0)),
        length: chunkLength,
      };
    }
    const block = this.#blockAt(offset);
    const from = within - block.start;
    const length = Math.min(block.length - from, end - offset);
    if (length === block.length) {
      return { crc: crcWithZeros(block.storedCrc, block.length - block.storedLength), length };
    }
    const crc = this.#read(block).then((bytes) => crc32(bytes.subarray(from, from + length)));
    return { crc, length };
  }

  #blockAt(offset: number): Block {
    const position = Math.floor(offset / CHUNK_BYTES);
    const within = offset - position * CHUNK_BYTES;
    const index = Math.floor(within / BLOCK_BYTES);
    const start = index * BLOCK_BYTES;
    const chunkLength = Math.min(CHUNK_BYTES, this.inode.sizeBytes - position * CHUNK_BYTES);
    const length = Math.min(BLOCK_BYTES, chunkLength - start);
    const chunk = this.#chunkAt(position);
    const storedToEnd = Math.max(0, Math.min(chunkLength, chunk?.length ?? 0) - start);
    const storedLength = Math.min(length, storedToEnd);
    return {
      chunk,
      start,
      length,
      storedLength,
      storedCrc: storedLength === 0 ? 0 : this.#blockCrc(chunk, index),
      storedToEnd,
    };
  }

  #chunkAt(position: number): ChunkRecord | undefined {
    if (this.#isClosed) throw new GroveError("BAD_ARGUMENT", "the content was closed");
    const { from, below } = this.#within ?? { from: 0, below: Number.POSITIVE_INFINITY };
    // What was not loaded is no hole.
    if (position < from || position >= below)
      throw new GroveError("INTERNAL", "a part of a file was read that was not opened");
    const id = this.#pinned === undefined ? undefined : chunkIdAt(this.#pinned, position);
    if (id === undefined) return undefined;
    if (this.#lastChunk?.id === id) return this.#lastChunk;
    const chunk = this.#deps.reader.chunk(id, this.inode.id);
    if (chunk === undefined) throw this.#corrupt("a chunk has no row");
    this.#lastChunk = chunk;
    return chunk;
  }

  #blockCrc(chunk: ChunkRecord | undefined, index: number): number {
    const crcs = chunk?.blockCrcs;
    if (crcs === undefined || crcs.byteLength < (index + 1) * 4)
      throw this.#corrupt("a checksum is missing", chunk);
    return new DataView(crcs.buffer, crcs.byteOffset).getUint32(index * 4, true);
  }

  async #read(block: Block, room?: Buffer): Promise<Buffer> {
    const { chunk, storedLength } = block;
    if (chunk === undefined || storedLength === 0) return Buffer.alloc(block.length);
    const bytes =
      storedLength === block.length
        ? (room?.subarray(0, block.length) ?? Buffer.allocUnsafeSlow(block.length))
        : Buffer.alloc(block.length);
    const stored = storedLength === block.length ? bytes : bytes.subarray(0, storedLength);
    await this.#fill(stored, chunk, block.start);
    this.#verify(stored, block.storedCrc, chunk);
    return bytes;
  }

  /** Reads stored bytes of a chunk, from an offset within it. */
  async #fill(bytes: Buffer, chunk: ChunkRecord, start: number): Promise<void> {
    if (this.#elsewhere !== undefined) return this.#fetch(this.#elsewhere, bytes, chunk, start);
    let got: number;
    try {
      got = await this.#deps.files.use(chunk.name, (descriptor) => readFully(descriptor, bytes, start));
    } catch (error) {
      throw harmlessFileError(error) ?? this.#corrupt("a chunk file cannot be read", chunk, error);
    }
    if (got < bytes.length) throw this.#corrupt("a chunk file is too short", chunk);
  }

  async #fetch(from: ChunkBytes, bytes: Buffer, chunk: ChunkRecord, start: number): Promise<void> {
    try {
      await from.fill(bytes, chunk, start, () => this.#following(chunk.id));
    } catch (error) {
      throw isGroveError(error, "CORRUPT")
        ? this.#corrupt("a chunk of the store is damaged", chunk, error)
        : error;
    }
  }

  /** The two chunks after one, for a reader in order. */
  #following(id: number): ChunkRecord[] {
    const { chunkIds = new Float64Array() } = this.#pinned ?? {};
    const at = chunkIds.indexOf(id);
    const next = at < 0 ? [] : [...chunkIds.subarray(at + 1, at + 3)];
    try {
      return next.flatMap((each) => this.#deps.reader.chunk(each, this.inode.id) ?? []);
    } catch (error) {
      if (error instanceof RowsToCome) return [];
      throw error;
    }
  }

  #verify(block: Buffer, blockCrc: number, chunk: ChunkRecord): void {
    if (crc32(block) !== blockCrc) throw this.#corrupt("a block does not match its checksum", chunk);
  }

  #checkedInline(): Buffer {
    const bytes = this.#inline;
    if (bytes === undefined) throw new GroveError("BAD_ARGUMENT", "the content was closed");
    if (!this.#isInlineChecked) {
      if (bytes.length !== this.inode.sizeBytes || crc32(bytes) !== this.inode.crc32) {
        throw this.#corrupt("a small file does not match its checksum");
      }
      this.#isInlineChecked = true;
    }
    return bytes;
  }

  /**
   * A sound chunk may belong to another file: a list with lost or exchanged chunks does not give the file's
   * checksum. Very long lists are left to the scrub and to reads of the whole file.
   */
  #checkList(): void {
    const list = this.#pinned;
    if (list === undefined || list.isChecked === true || this.#within !== undefined) return;
    if (list.positions.length > LIST_CHECK_CHUNKS) return;
    const checksum = new ListChecksum();
    for (const position of list.positions) {
      const chunk = this.#chunkAt(position);
      if (chunk !== undefined) checksum.add({ position, length: chunk.length, crc32: chunk.crc32 });
    }
    const { sizeBytes, crc32: whole } = this.inode;
    if (checksum.endBytes > sizeBytes || checksum.crcOf(sizeBytes) !== whole) {
      throw this.#corrupt("a large file's chunks do not give its checksum");
    }
    list.isChecked = true;
  }

  #refuseOutside(offset: number, length: number): void {
    const isInside = offset >= 0 && length >= 0 && offset + length <= this.inode.sizeBytes;
    if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length) || !isInside) {
      throw new GroveError("BAD_ARGUMENT", "the range is not within the file");
    }
  }

  /** A damaged file is refused as a whole, its intact parts included, so that readers notice at once. */
  #refuseDamaged(): void {
    if (this.inode.damaged) throw new GroveError("CORRUPT", damagedText);
  }

  #corrupt(problem: string, chunk?: ChunkRecord, cause?: unknown): GroveError {
    if (!this.#isReported) {
      this.#isReported = true;
      this.#deps.damaged(this.inode, problem, chunk?.id);
    }
    return new GroveError("CORRUPT", damagedText, { cause: cause ?? new Error(problem) });
  }
}

async function readFully(descriptor: number, bytes: Buffer, position: number): Promise<number> {
  let got = 0;
  while (got < bytes.length) {
    const { bytesRead } = await readBytes(descriptor, bytes, got, bytes.length - got, position + got);
    if (bytesRead === 0) break;
    got += bytesRead;
  }
  return got;
}
