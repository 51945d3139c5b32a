// The content of an upload whose bytes another thread moves: it names, flushes and closes the chunk files here.
import { CHUNK_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import type { ChunkWriter } from "#storage/chunks/chunk-writer.ts";
import type { ContentStart, WholeChunk } from "#storage/chunks/content-writer.ts";
import type { ContentElsewhere, WrittenChunk } from "#storage/contract/content-elsewhere.ts";

/** Dependencies of distant content. */
export interface DistantContentDeps {
  readonly elsewhere: ContentElsewhere;
  /** Bytes of the whole content, where they are known. */
  readonly sizeBytes: number | undefined;
  /** Begins the file of the chunk at a position. */
  readonly begin: (position: number) => ChunkWriter;
  readonly ended: (chunk: WholeChunk<ChunkWriter>) => void;
  readonly failed: (error: unknown) => void;
}

/** Like a ContentWriter, by orders to another thread. */
export class DistantContent {
  readonly #deps: DistantContentDeps;
  /** Files that the other thread has. */
  readonly #lent = new Map<number, ChunkWriter>();
  #receivedBytes: number;
  #nextPosition: number;
  #inline: Buffer = Buffer.alloc(0);
  #fileCrc = 0;
  #stopping: Promise<void> | undefined;

  constructor(deps: DistantContentDeps, start: ContentStart = { offsetBytes: 0, crc32: 0 }) {
    this.#deps = deps;
    this.#receivedBytes = start.offsetBytes;
    this.#nextPosition = start.offsetBytes / CHUNK_BYTES;
    const { offsetBytes, crc32 } = start;
    const { sizeBytes } = deps;
    deps.elsewhere.begin(
      { offsetBytes, crc32, sizeBytes },
      { written: (chunk) => this.#written(chunk), failed: deps.failed },
    );
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  get fileCrc(): number {
    return this.#fileCrc;
  }

  get inline(): Buffer {
    return this.#inline;
  }

  /** Files of chunks that have not ended; only after `close` are they no longer in use. */
  get unfinished(): readonly ChunkWriter[] {
    return [...this.#lent.values()];
  }

  /** Has the payload of the message at hand written, and resolves with its CRC-32. */
  async take(payloadBytes: number): Promise<number> {
    const end = this.#receivedBytes + payloadBytes;
    if (payloadBytes > 0 && end > INLINE_FILE_MAX_BYTES) {
      // Where the size is known, the next file is lent before it is needed.
      const { sizeBytes } = this.#deps;
      const lentTo = sizeBytes === undefined ? end : Math.min(end + CHUNK_BYTES, sizeBytes);
      while (this.#nextPosition * CHUNK_BYTES < lentTo) this.#lend(this.#nextPosition++);
    }
    const crc32 = await this.#deps.elsewhere.take();
    this.#receivedBytes = end;
    return crc32;
  }

  /** Ends the last chunk. Resolves when all are reported. */
  async end(): Promise<void> {
    const { inline, crc32 } = await this.#deps.elsewhere.end();
    if (inline !== undefined) this.#inline = Buffer.from(inline.buffer, inline.byteOffset, inline.byteLength);
    this.#fileCrc = crc32;
  }

  /** Drops what is not reported. Resolves when the other thread uses no file. */
  close(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    await this.#deps.elsewhere.stop();
    for (const writer of this.#lent.values()) writer.giveBack(0);
  }

  #lend(position: number): void {
    const writer = this.#deps.begin(position);
    this.#lent.set(position, writer);
    const { elsewhere, failed } = this.#deps;
    const lend = (descriptor: number | undefined): void => {
      if (this.#stopping === undefined) elsewhere.lend(position, descriptor);
    };
    writer.lend().then(lend, (error: unknown) => {
      failed(error);
      lend(undefined);
    });
  }

  #written({ position, length, crc32, blockCrcs }: WrittenChunk): void {
    const file = this.#lent.get(position);
    if (file === undefined) return;
    this.#lent.delete(position);
    file.giveBack(length);
    const durable = file.finish();
    const { elsewhere, failed, ended } = this.#deps;
    const flushed = (): void => elsewhere.flushed(position);
    durable.then(flushed, (error: unknown) => {
      failed(error);
      flushed();
    });
    ended({ endBytes: position * CHUNK_BYTES + length, file, checksums: { crc32, blockCrcs }, durable });
  }
}
