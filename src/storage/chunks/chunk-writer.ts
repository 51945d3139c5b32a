// Writes one chunk file as its bytes arrive: several writes in flight, checksums per block, one flush at its
// end.
import { writev } from "node:fs";
import { promisify } from "node:util";
import type { ChunkStore } from "./chunk-store.ts";
import type { ChunkChecksums } from "./content-checksums.ts";

const writeBuffers = promisify(writev);

/** A complete chunk file on stable storage that has no row yet. */
export interface NewChunk {
  readonly position: number;
  readonly name: string;
  readonly length: number;
  readonly crc32: number;
  readonly blockCrcs: Uint8Array;
}

/** A chunk file under construction. Its first error is thrown by every later call. */
export class ChunkWriter {
  readonly name: string;
  readonly position: number;
  readonly #store: ChunkStore;
  /** The user who pays for the write. */
  readonly #party: string;
  readonly #descriptor: Promise<number>;
  readonly #writes = new Set<Promise<void>>();
  #length = 0;
  #finished: Promise<void> | undefined;
  #returned: (() => void) | undefined;

  constructor(store: ChunkStore, position: number, party: string) {
    this.#store = store;
    this.#party = party;
    this.position = position;
    this.name = store.takeName();
    this.#descriptor = store.create(this.name);
    // Callers that wait for a write or for the end receive the error.
    this.#descriptor.catch(() => undefined);
  }

  /** Appends slices, which must not change until the promise is settled. */
  append(slices: readonly Buffer[], byteCount: number): Promise<void> {
    const at = this.#length;
    this.#length += byteCount;
    const write = this.#write(slices, byteCount, at);
    this.#writes.add(write);
    const landed = (): boolean => this.#writes.delete(write);
    write.then(landed, landed);
    return write;
  }

  /** Resolves when the file has its name. Rejects when it could not be made. */
  async named(): Promise<void> {
    await this.#descriptor;
  }

  /** Lends the file to another thread until `giveBack`. Resolves with its descriptor. */
  lend(): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#returned = resolve;
    this.#writes.add(promise);
    return this.#descriptor;
  }

  /** The other thread has written that many bytes, and uses the file no more. */
  giveBack(length: number): void {
    this.#length = length;
    this.#returned?.();
  }

  /** Puts the file on stable storage. The caller that commits flushes its directory. */
  finish(): Promise<void> {
    this.#finished ??= this.#finish();
    return this.#finished;
  }

  /** Closes the file, even after an error, and removes it. */
  async discard(mayUnlink: boolean): Promise<void> {
    const descriptor = await this.#descriptor.catch(() => undefined);
    if (descriptor === undefined) return;
    await Promise.allSettled(this.#writes);
    // Once a flush has begun it closes the file itself.
    if (this.#finished === undefined) await this.#store.discard(descriptor);
    else await this.#finished.catch(() => undefined);
    if (mayUnlink) await this.#store.unlink(this.name);
  }

  /** The chunk's row. */
  record({ crc32, blockCrcs }: ChunkChecksums): NewChunk {
    const { position, name } = this;
    return { position, name, length: this.#length, crc32, blockCrcs: packCrcs(blockCrcs) };
  }

  async #finish(): Promise<void> {
    const descriptor = await this.#descriptor;
    try {
      await Promise.all(this.#writes);
    } catch (error) {
      // A write that goes on would meet another file under the number of a closed one.
      await Promise.allSettled(this.#writes);
      await this.#store.discard(descriptor);
      throw error;
    }
    await this.#store.flushAndClose(this.#party, descriptor);
  }

  async #write(slices: readonly Buffer[], byteCount: number, at: number): Promise<void> {
    await writeSlices(await this.#descriptor, slices, byteCount, at);
  }
}

/** Writes slices of that many bytes into a file, from a place on. */
export async function writeSlices(
  descriptor: number,
  slices: readonly Buffer[],
  byteCount: number,
  at: number,
): Promise<void> {
  let rest = slices;
  let written = 0;
  while (written < byteCount) {
    const { bytesWritten } = await writeBuffers(descriptor, rest, at + written);
    // Only a full disk makes short writes; the next write then fails.
    written += bytesWritten;
    if (written < byteCount) rest = behind(rest, bytesWritten);
  }
}

/** Packs one little-endian number of four bytes per block. */
export function packCrcs(crcs: readonly number[]): Uint8Array {
  const packed = Buffer.allocUnsafeSlow(crcs.length * 4);
  for (const [index, crc] of crcs.entries()) packed.writeUInt32LE(crc, index * 4);
  return new Uint8Array(packed.buffer, packed.byteOffset, packed.length);
}

/** Returns slices without their first bytes. */
function behind(slices: readonly Buffer[], byteCount: number): Buffer[] {
  const rest: Buffer[] = [];
  let skip = byteCount;
  for (const slice of slices) {
    if (skip >= slice.length) skip -= slice.length;
    else {
      rest.push(skip === 0 ? slice : slice.subarray(skip));
      skip = 0;
    }
  }
  return rest;
}
