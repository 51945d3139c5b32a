// Writes one chunk to the object store: gathers its bytes, then puts them as a whole under a name of its own.
import type { Random } from "#base/random.ts";
import { type NewChunk, packCrcs } from "#storage/chunks/chunk-writer.ts";
import type { ChunkChecksums } from "#storage/chunks/content-checksums.ts";
import type { GrowingFile } from "#storage/chunks/content-writer.ts";
import { FairSlots } from "#storage/chunks/fair-slots.ts";
import { WriteBuffers } from "#storage/chunks/write-buffers.ts";
import { chunkKey } from "./chunk-blocks.ts";
import type { ChunkNamesOfRoot } from "./chunk-names-of-root.ts";
import type { ChunkRoom, GrantedRoom } from "./chunk-room.ts";
import { bytesBody } from "./s3-client.ts";
import { SpillFile } from "./spill-file.ts";
import type { StoreRequests } from "./store-requests.ts";

/** Chunks of a node that are put at once. */
export const PUTS_AT_ONCE = 64;
/** The same of one user. */
export const PUTS_AT_ONCE_PER_USER = 16;
/** Bytes of free buffers that are kept: as many as one upload fills with five chunks. */
const KEPT_BUFFER_BYTES = 20_971_520;

/** What all writers of a node share. */
export class ChunkPuts {
  readonly requests: StoreRequests;
  readonly prefix: string;
  readonly room: ChunkRoom;
  readonly slots: FairSlots = new FairSlots({
    what: "uploads of chunks",
    slots: PUTS_AT_ONCE,
    slotsPerUser: PUTS_AT_ONCE_PER_USER,
  });
  /** Buffers that uploads gather in. */
  readonly buffers: WriteBuffers = new WriteBuffers(KEPT_BUFFER_BYTES);
  readonly #spillFolder: string;
  readonly #random: Random;

  constructor(deps: {
    requests: StoreRequests;
    prefix: string;
    room: ChunkRoom;
    /** Local folder for chunks that find no room in memory. */
    spillFolder: string;
    random: Random;
  }) {
    this.requests = deps.requests;
    this.prefix = deps.prefix;
    this.room = deps.room;
    this.#spillFolder = deps.spillFolder;
    this.#random = deps.random;
  }

  spill(): SpillFile {
    return new SpillFile(this.#spillFolder, this.#random);
  }
}

/** Dependencies of one chunk. */
export interface ObjectChunkDeps {
  readonly puts: ChunkPuts;
  readonly names: ChunkNamesOfRoot;
  /** Bounds the chunks of one upload that are put at once. */
  readonly turns: FairSlots;
  /** The user who pays for the write. */
  readonly user: string;
  readonly position: number;
  /** Most bytes that the chunk can have. */
  readonly maxBytes: number;
}

/**
 * A chunk under construction. `append` settles when its slices may change: in memory with the end of the
 * chunk, in a file once they are written. Its first error is thrown by every later call.
 */
export class ObjectChunkWriter implements GrowingFile {
  readonly position: number;
  readonly #deps: ObjectChunkDeps;
  readonly #room: Promise<GrantedRoom>;
  readonly #slices: Buffer[] = [];
  readonly #ended = Promise.withResolvers<void>();
  #length = 0;
  #name: string | undefined;
  #spill: SpillFile | undefined;
  #finishing: Promise<void> | undefined;
  readonly #gone = new AbortController();
  #isCertain = true;

  constructor(deps: ObjectChunkDeps) {
    this.#deps = deps;
    this.position = deps.position;
    this.#room = deps.puts.room.take(deps.user, deps.maxBytes, this.#gone.signal);
    this.#ended.promise.catch(() => undefined);
  }

  /** Resolves when the chunk has its place, in memory or in a file. */
  get placed(): Promise<unknown> {
    return this.#room;
  }

  async append(slices: readonly Buffer[], byteCount: number): Promise<void> {
    this.#length += byteCount;
    this.#slices.push(...slices);
    const { place } = await this.#room;
    if (place !== "file") return this.#ended.promise;
    this.#spill ??= this.#deps.puts.spill();
    // Those that waited for the room go in their order, with the first of these calls.
    const waiting = this.#slices.splice(0);
    return this.#spill.append(
      waiting,
      waiting.reduce((sum, slice) => sum + slice.length, 0),
    );
  }

  /** Resolves when the store has the chunk. */
  finish(checksums: ChunkChecksums): Promise<void> {
    this.#finishing ??= this.#finish(checksums).then(
      () => this.#ended.resolve(),
      (error: unknown) => {
        this.#ended.reject(error);
        throw error;
      },
    );
    return this.#finishing;
  }

  /** The chunk's row, once it is finished. */
  record({ crc32, blockCrcs }: ChunkChecksums): NewChunk {
    const { position } = this;
    return { position, name: this.#name ?? "", length: this.#length, crc32, blockCrcs: packCrcs(blockCrcs) };
  }

  /** Says that the chunk has its row. */
  settle(): void {
    if (this.#name !== undefined) this.#deps.names.end(this.#name, this.#isCertain ? "settled" : "unsure");
  }

  /** Drops the chunk. Its object goes now, or with the sweeps of its block where the store does not answer. */
  async discard(): Promise<void> {
    this.#gone.abort();
    this.#ended.resolve();
    await this.#finishing?.catch(() => undefined);
    await this.#release();
    const name = this.#name;
    if (name === undefined) return;
    const { puts, names } = this.#deps;
    try {
      const left = await puts.requests.deleteMany([chunkKey(puts.prefix, name)]);
      names.end(name, this.#isCertain && left.size === 0 ? "settled" : "unsure");
    } catch {
      names.end(name, "unsure");
    }
  }

  async #finish(checksums: ChunkChecksums): Promise<void> {
    const { puts, turns, user } = this.#deps;
    try {
      await this.#room;
      await turns.run(user, () => puts.slots.run(user, () => this.#put(checksums)));
    } finally {
      await this.#release();
    }
  }

  async #put({ crc32 }: ChunkChecksums): Promise<void> {
    const { puts, names } = this.#deps;
    if (this.#gone.signal.aborted) return;
    const body = (await this.#spill?.body()) ?? bytesBody(this.#slices, this.#length);
    this.#name = await names.take();
    // Until an answer says otherwise the object may be there.
    this.#isCertain = false;
    const stored = await puts.requests.putNew(chunkKey(puts.prefix, this.#name), body, crc32);
    this.#isCertain = stored.isCertain;
  }

  async #release(): Promise<void> {
    await this.#spill?.close();
    this.#slices.length = 0;
    const { release } = await this.#room;
    release();
  }
}
