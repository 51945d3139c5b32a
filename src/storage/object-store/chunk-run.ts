// Fetches the rest of a chunk in one request and hands out its blocks as they arrive, each checked.
import { BLOCK_BYTES } from "#base/limits.ts";
import { crc32 } from "#os/crc32.ts";
import type { ReadCache } from "./read-cache.ts";
import type { StoreRequests } from "./store-requests.ts";

/** The row of a chunk, as far as reading needs it. */
export interface StoredChunk {
  readonly name: string;
  readonly length: number;
  /** A little-endian CRC-32 for each block. */
  readonly blockCrcs: Uint8Array;
}

/** Bytes of a block of a chunk. */
export function blockLength(chunk: StoredChunk, index: number): number {
  return Math.min(BLOCK_BYTES, chunk.length - index * BLOCK_BYTES);
}

/** Whether bytes are those that the row tells of. */
export function isBlock(chunk: StoredChunk, index: number, bytes: Buffer): boolean {
  const { blockCrcs } = chunk;
  if (blockCrcs.byteLength < (index + 1) * 4 || bytes.length !== blockLength(chunk, index)) return false;
  const view = new DataView(blockCrcs.buffer, blockCrcs.byteOffset, blockCrcs.byteLength);
  return crc32(bytes) === view.getUint32(index * 4, true);
}

interface Slot {
  readonly arrived: PromiseWithResolvers<Buffer | undefined>;
  isHeld: boolean;
}

/** Dependencies of one run. */
export interface ChunkRunDeps {
  readonly requests: StoreRequests;
  readonly key: string;
  readonly chunk: StoredChunk;
  readonly firstBlock: number;
  readonly cache: ReadCache;
  /** Called once when the run holds no bytes any more. */
  readonly released: () => void;
}

/** One request under way, and the blocks that it brought and that were not taken yet. */
export class ChunkRun {
  readonly #deps: ChunkRunDeps;
  readonly #slots = new Map<number, Slot>();
  #isEnded = false;
  #isUnwanted = false;
  #held = 0;
  #caching = 0;

  constructor(deps: ChunkRunDeps) {
    this.#deps = deps;
    const blocks = Math.ceil(deps.chunk.length / BLOCK_BYTES);
    for (let index = deps.firstBlock; index < blocks; index++) {
      const arrived = Promise.withResolvers<Buffer | undefined>();
      arrived.promise.catch(() => undefined);
      this.#slots.set(index, { arrived, isHeld: false });
    }
  }

  /** Fetches. Resolves when the request has ended, in any way. */
  async fetch(): Promise<void> {
    let error: unknown;
    try {
      await this.#fetch();
    } catch (thrown) {
      error = thrown;
    }
    this.#isEnded = true;
    for (const { arrived } of this.#slots.values()) arrived.reject(error);
    this.#releaseIfEmpty();
  }

  /**
   * A block, once it has arrived: undefined when its bytes are wrong. Other readers find it in the cache
   * then. Rejected when the store does not answer.
   */
  async take(index: number): Promise<Buffer | undefined> {
    const slot = this.#slots.get(index);
    const bytes = await slot?.arrived.promise;
    this.#forget(index);
    return bytes;
  }

  /** True when it holds nothing and nothing comes. */
  get isOver(): boolean {
    return this.#isEnded && this.#held === 0;
  }

  /** True while a block is on its way, or is held. */
  has(index: number): boolean {
    return this.#slots.has(index);
  }

  /** Holds no bytes for readers any more; what still arrives goes to the cache alone. */
  abandon(): void {
    this.#isUnwanted = true;
    for (const [index, { isHeld }] of this.#slots) if (isHeld) this.#forget(index);
  }

  async #fetch(): Promise<void> {
    const { requests, key, chunk, firstBlock } = this.#deps;
    let next = firstBlock;
    await requests.retried("GET", async () => {
      const start = next * BLOCK_BYTES;
      let block = Buffer.allocUnsafeSlow(blockLength(chunk, next));
      let filled = 0;
      await requests.client.get(key, start, chunk.length - start, (piece) => {
        for (let at = 0; at < piece.length; ) {
          const copied = piece.copy(block, filled, at);
          at += copied;
          filled += copied;
          if (filled < block.length) continue;
          this.#arrived(next++, block);
          block = Buffer.allocUnsafeSlow(Math.max(0, blockLength(chunk, next)));
          filled = 0;
        }
      });
    });
  }

  #arrived(index: number, bytes: Buffer): void {
    const { chunk, cache } = this.#deps;
    const slot = this.#slots.get(index);
    if (slot === undefined) return;
    if (!isBlock(chunk, index, bytes)) {
      slot.arrived.resolve(undefined);
      this.#slots.delete(index);
      return;
    }
    slot.isHeld = true;
    this.#held++;
    slot.arrived.resolve(bytes);
    this.#caching++;
    void cache.write(chunk.name, index, bytes).then(() => {
      this.#caching--;
      this.#releaseIfEmpty();
    });
    if (this.#isUnwanted) this.#forget(index);
  }

  #forget(index: number): void {
    const slot = this.#slots.get(index);
    if (slot?.isHeld !== true) return;
    this.#slots.delete(index);
    this.#held--;
    this.#releaseIfEmpty();
  }

  #releaseIfEmpty(): void {
    if (this.#isEnded && this.#held === 0 && this.#caching === 0) this.#deps.released();
  }
}
