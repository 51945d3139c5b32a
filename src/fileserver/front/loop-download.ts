// The half of a download in the thread of its connection: reads lent chunk files, checks every block, sends.
import { read } from "node:fs";
import { promisify } from "node:util";
import { BLOCK_BYTES } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import { type BlockSource, Pump, type StallWatch } from "#fileserver/transfers/download-pump.ts";
import {
  chunkStart,
  type DownloadOrder,
  type DownloadReport,
} from "#fileserver/transfers/transfer-messages.ts";
import { crc32 } from "#os/crc32.ts";
import type { ChunkFault, LentChunk } from "#storage/contract/file-content.ts";
import type { SlicedWriter } from "#wire/grpc/sliced.ts";
import type { GuestCall } from "#wire/loops/guest-call.ts";
import type { DownloadResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

const readBytes = promisify(read);

type Writer = SlicedWriter<typeof DownloadResponseSchema>;

/** One download. What to send is an order. */
export class LoopDownload {
  readonly #call: GuestCall;
  readonly #stalls: StallWatch;
  readonly #pump: Pump;
  /** By the start of the chunk in the file: the one that is being sent, and the one after it. */
  readonly #lent = new Map<number, LentBlocks>();
  #isLarge = false;
  #isStopped = false;

  constructor(call: GuestCall, writer: Writer, stalls: StallWatch) {
    this.#call = call;
    this.#stalls = stalls;
    const lent = this.#lent;
    const content: BlockSource = {
      readBlock: (offset, into) => {
        const blocks = lent.get(chunkStart(offset));
        if (blocks === undefined) throw new Error("the chunk is not lent");
        return blocks.readBlock(offset, into);
      },
      get readableTo() {
        let end = 0;
        for (const blocks of lent.values()) end = Math.max(end, blocks.endBytes);
        return end;
      },
    };
    const outlet = {
      slice: (bytes: Uint8Array): true | Promise<void> => writer.framed(bytes),
      get stalledMs() {
        return writer.stalledMs;
      },
    };
    this.#pump = new Pump(content, outlet, {
      requireLive: () => {
        if (this.#isStopped) throw new Error("the download is over");
      },
      // The deciding half has the place.
      takeLarge: () => (this.#isLarge ? () => undefined : undefined),
    });
    stalls.add(this.#pump);
    call.onTold = (message) => this.#obey(message as DownloadOrder);
    call.onWrite = (bytes) => writer.framed(bytes);
    call.onLost = () => this.#stop();
  }

  #obey(order: DownloadOrder): void {
    if (order.op === "lend") this.#lent.set(order.chunk.startBytes, new LentBlocks(order.chunk));
    else if (order.op === "send") void this.#send(order);
    else {
      this.#stop();
      // The pump may wait for its client; the files are free as soon as no read is under way.
      for (const blocks of this.#lent.values()) void this.#free(blocks, false);
    }
  }

  async #send({ from, to, end, isLarge }: Extract<DownloadOrder, { readonly op: "send" }>): Promise<void> {
    const blocks = this.#lent.get(chunkStart(from));
    if (blocks === undefined) return;
    this.#isLarge = isLarge;
    let isSent = false;
    try {
      await this.#call.whenWritten();
      await this.#pump.send(from, to, end);
      isSent = true;
    } catch {
      // A fault of the chunk, the end of the call, or an order to stop.
    }
    await this.#free(blocks, isSent);
  }

  /** Reports once that a file is not in use. */
  async #free(blocks: LentBlocks, isSent: boolean): Promise<void> {
    await blocks.close();
    const { startBytes, fault } = blocks;
    if (this.#lent.delete(startBytes)) {
      this.#call.tell({ startBytes, isSent, fault } satisfies DownloadReport);
    }
  }

  #stop(): void {
    this.#isStopped = true;
    this.#stalls.remove(this.#pump);
    this.#pump.letGo();
  }
}

/** The blocks of a lent chunk, each checked before it is given out. */
class LentBlocks {
  /** What is wrong with the chunk's file. */
  fault: ChunkFault | undefined;
  readonly #chunk: LentChunk;
  readonly #reads = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(chunk: LentChunk) {
    this.#chunk = chunk;
  }

  get startBytes(): number {
    return this.#chunk.startBytes;
  }

  /** End of the chunk in the file. */
  get endBytes(): number {
    return this.#chunk.startBytes + this.#chunk.length;
  }

  readBlock(offset: number, into?: () => Buffer): Promise<Buffer> {
    if (this.#isClosed) return Promise.reject(new Error("the chunk is no longer lent"));
    const reading = this.#read(offset, into);
    this.#reads.add(reading);
    const ended = (): boolean => this.#reads.delete(reading);
    reading.then(ended, ended);
    return reading;
  }

  /** Resolves when no read is under way; no other begins. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#reads);
  }

  async #read(offset: number, into: (() => Buffer) | undefined): Promise<Buffer> {
    const { startBytes, length, storedLength, descriptor } = this.#chunk;
    const within = offset - startBytes;
    const start = within - (within % BLOCK_BYTES);
    const blockLength = Math.min(BLOCK_BYTES, length - start);
    const stored = Math.max(0, Math.min(blockLength, storedLength - start));
    if (descriptor === undefined || stored === 0) return Buffer.alloc(blockLength - (within - start));
    const room = stored === blockLength ? into?.() : undefined;
    // Further blocks of the chunk follow in a larger buffer, as many as it holds.
    const toEnd = Math.min(storedLength, length) - start;
    const bytes =
      room?.subarray(0, Math.min(toEnd, room.length - (room.length % BLOCK_BYTES))) ??
      Buffer.alloc(blockLength);
    await this.#fill(descriptor, room === undefined ? bytes.subarray(0, stored) : bytes, start);
    return bytes.subarray(within - start);
  }

  /** Fills a buffer from the start of a block on, and checks every block in it. */
  async #fill(descriptor: number, bytes: Buffer, start: number): Promise<void> {
    let got = 0;
    try {
      while (got < bytes.length) {
        const { bytesRead } = await readBytes(descriptor, bytes, got, bytes.length - got, start + got);
        if (bytesRead === 0) break;
        got += bytesRead;
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw this.#found(`a chunk file cannot be read: ${errorText(error)}`, code);
    }
    if (got < bytes.length) throw this.#found("a chunk file is too short");
    const { blockCrcs } = this.#chunk;
    const wanted = new DataView(blockCrcs.buffer, blockCrcs.byteOffset);
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
      const crc = wanted.getUint32(((start + at) / BLOCK_BYTES) * 4, true);
      if (crc32(bytes.subarray(at, at + BLOCK_BYTES)) !== crc) {
        throw this.#found("a block does not match its checksum");
      }
    }
  }

  #found(problem: string, code?: string): Error {
    this.fault ??= { problem, code };
    return new Error(problem);
  }
}
