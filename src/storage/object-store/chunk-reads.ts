// Reads blocks of chunks: from the cache, from a request under way, or from the store; each block is checked.
import { GroveError } from "#base/errors.ts";
import { BLOCK_BYTES } from "#base/limits.ts";
import { FairSlots } from "#storage/chunks/fair-slots.ts";
import { chunkKey } from "./chunk-blocks.ts";
import { blockLength, ChunkRun, isBlock, type StoredChunk } from "./chunk-run.ts";
import type { ReadCache } from "./read-cache.ts";
import { isStoreProblem } from "./store-error.ts";
import type { StoreMarker } from "./store-marker.ts";
import type { StoreRequests } from "./store-requests.ts";

/** Requests for content that are under way at once. */
export const GETS_AT_ONCE = 64;
/** The same of one user. */
export const GETS_AT_ONCE_PER_USER = 16;
/** Bytes that may be fetched ahead of readers, of all users. */
export const READ_AHEAD_BYTES = 128_000_000;
/** The same of one user. */
export const READ_AHEAD_BYTES_PER_USER = 32_000_000;
/** Chunks after the one that is read which are fetched ahead. */
export const READ_AHEAD_CHUNKS = 2;

/** Times that a block is fetched before its bytes in the store count as damaged. */
const FETCHES_MAX = 2;

/** What readers of a node share. */
export class ChunkReads {
  readonly #requests: StoreRequests;
  readonly #prefix: string;
  readonly #cache: ReadCache;
  readonly #marker: Pick<StoreMarker, "requireThere">;
  readonly #slots = new FairSlots({
    what: "reads of chunks",
    slots: GETS_AT_ONCE,
    slotsPerUser: GETS_AT_ONCE_PER_USER,
  });
  /** Runs by chunk: readers of the same chunk share one. */
  readonly #runs = new Map<string, ChunkRun>();
  readonly #aheadOf = new Map<string, number>();
  #aheadBytes = 0;

  constructor(deps: {
    requests: StoreRequests;
    prefix: string;
    cache: ReadCache;
    marker: Pick<StoreMarker, "requireThere">;
  }) {
    this.#marker = deps.marker;
    this.#requests = deps.requests;
    this.#prefix = deps.prefix;
    this.#cache = deps.cache;
  }

  /** A reader of one file for a user. */
  open(user: string): ChunkReading {
    return new ChunkReading(this, user);
  }

  /** Bytes that are fetched ahead now. */
  get aheadBytes(): number {
    return this.#aheadBytes;
  }

  /** The block in the cache or in a run that is under way. */
  async ready(chunk: StoredChunk, index: number): Promise<Buffer | undefined> {
    const run = this.#runs.get(chunk.name);
    if (run?.has(index) === true) {
      const taken = await run.take(index).catch((error: unknown) => {
        // Asked for by itself, it says which of a chunk's blocks are there.
        if (!isStoreProblem(error, "missing")) throw error;
      });
      if (taken !== undefined) return taken;
    }
    return this.#cached(chunk, index);
  }

  /** Begins to fetch a chunk from a block on, unless that is under way or there is no room for it. */
  begin(user: string, chunk: StoredChunk, firstBlock: number): ChunkRun | undefined {
    const known = this.#runs.get(chunk.name);
    if (known !== undefined) return known;
    if (this.#cache.mayHave(chunk.name, firstBlock)) return undefined;
    const bytes = chunk.length - firstBlock * BLOCK_BYTES;
    const own = this.#aheadOf.get(user) ?? 0;
    const isTaken = this.#aheadBytes + bytes > READ_AHEAD_BYTES || own + bytes > READ_AHEAD_BYTES_PER_USER;
    if (isTaken) return undefined;
    this.#count(user, bytes);
    let isHeld = true;
    const run = new ChunkRun({
      requests: this.#requests,
      key: chunkKey(this.#prefix, chunk.name),
      chunk,
      firstBlock,
      cache: this.#cache,
      released: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#count(user, -bytes);
        if (this.#runs.get(chunk.name) === run) this.#runs.delete(chunk.name);
      },
    });
    this.#runs.set(chunk.name, run);
    void this.#slots.run(user, () => run.fetch());
    return run;
  }

  /** Fetches one block by itself. Throws CORRUPT, or StoreError when the store does not answer. */
  async fetchBlock(user: string, chunk: StoredChunk, index: number): Promise<Buffer> {
    const key = chunkKey(this.#prefix, chunk.name);
    for (let tries = 0; tries < FETCHES_MAX; tries++) {
      const bytes = await this.#slots.run(user, () =>
        this.#requests
          .getRange(key, index * BLOCK_BYTES, blockLength(chunk, index))
          .catch((error: unknown) => this.#missing(error)),
      );
      if (!isBlock(chunk, index, bytes)) continue;
      void this.#cache.write(chunk.name, index, bytes);
      return bytes;
    }
    throw corrupt("the object store's bytes of a block do not match its checksum");
  }

  async #missing(error: unknown): Promise<never> {
    if (!isStoreProblem(error, "missing")) throw error;
    await this.#marker.requireThere();
    throw corrupt("a chunk is not in the object store", error);
  }

  async #cached(chunk: StoredChunk, index: number): Promise<Buffer | undefined> {
    const bytes = await this.#cache.read(chunk.name, index, blockLength(chunk, index));
    if (bytes === undefined || isBlock(chunk, index, bytes)) return bytes;
    await this.#cache.drop(chunk.name);
    return undefined;
  }

  #count(user: string, bytes: number): void {
    this.#aheadBytes += bytes;
    const own = (this.#aheadOf.get(user) ?? 0) + bytes;
    if (own > 0) this.#aheadOf.set(user, own);
    else this.#aheadOf.delete(user);
  }
}

/** Reads one file; a reader in order finds what was fetched ahead. */
export class ChunkReading {
  readonly #reads: ChunkReads;
  readonly #user: string;
  readonly #runs = new Set<ChunkRun>();
  #next: { readonly name: string; readonly index: number } | undefined;

  constructor(reads: ChunkReads, user: string) {
    this.#reads = reads;
    this.#user = user;
  }

  /**
   * One block, checked against its row. `following` names the file's next chunks, for a reader in order.
   * Throws CORRUPT for bytes that are wrong or missing in the store, and StoreError when it does not answer.
   */
  async readBlock(
    chunk: StoredChunk,
    index: number,
    following: () => readonly StoredChunk[] = () => [],
  ): Promise<Buffer> {
    const isInOrder = index === 0 || (this.#next?.name === chunk.name && this.#next.index === index);
    this.#next = { name: chunk.name, index: index + 1 };
    for (const run of this.#runs) if (run.isOver) this.#runs.delete(run);
    if (!isInOrder) this.close();
    else {
      this.#begin(chunk, index);
      for (const each of following().slice(0, READ_AHEAD_CHUNKS)) this.#begin(each, 0);
    }
    const ready = await this.#reads.ready(chunk, index);
    return ready ?? this.#reads.fetchBlock(this.#user, chunk, index);
  }

  /** Ends the reader, or what it did in order: what was fetched ahead for it stays in the cache alone. */
  close(): void {
    for (const run of this.#runs) run.abandon();
    this.#runs.clear();
  }

  #begin(chunk: StoredChunk, firstBlock: number): void {
    const run = this.#reads.begin(this.#user, chunk, firstBlock);
    if (run !== undefined) this.#runs.add(run);
  }
}

function corrupt(problem: string, cause?: unknown): GroveError {
  return new GroveError("CORRUPT", "a part of the file is damaged", { cause: cause ?? new Error(problem) });
}
