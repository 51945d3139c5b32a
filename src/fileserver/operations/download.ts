// Sends one version of a file block by block from disk to socket, never a byte that fails its checksum (D15).
import type { Clock } from "#base/clock.ts";
import { BLOCK_BYTES, CHUNK_BYTES } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import type { FileContent, Storage } from "#storage/contract/storage.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { SlicedWriter } from "#wire/grpc/sliced.ts";
import type { DownloadRequest, DownloadResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, existingFile, noLongerShared, type Reached } from "./access.ts";
import type { Caller } from "./caller.ts";
import { logCorruption, offsetInside, requireEtag } from "./content-operations.ts";
import { attrAt } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";
import type { StreamSlots } from "./stream-slots.ts";

/** A download whose client reads nothing for this long drops its read-ahead (decision D15). */
const DOWNLOAD_STALL_MS = 1_000;

type Writer = SlicedWriter<typeof DownloadResponseSchema>;

/** Dependencies of downloads. */
export interface DownloadDeps {
  readonly storage: Storage;
  readonly access: Access;
  readonly meter: OperationMeter;
  readonly telemetry: NodeTelemetry;
  readonly slots: StreamSlots;
  readonly stalls: StallWatch;
  readonly log: Logger;
}

const NO_BYTES = new Uint8Array(0);
/** Half of what may wait in a socket: while one piece is on its way, the next can be handed over. */
const PIECE_BYTES = 131_072;
/** Blocks read while one is being sent: with only one, a late turn of the thread pool stalls the stream. */
const BLOCKS_AHEAD = 2;
/**
 * Buffers that blocks are read into in turn; they stay in the processor's cache and cost no fresh memory.
 * When a block's last piece is accepted, less than one block's bytes (SEND_WINDOW_BYTES) still wait for the
 * socket. They belong to this block and to at most one before it, since only a chunk's last block is short.
 * So the buffers after the next in turn are free.
 */
const RING_BUFFERS: number = 3 + BLOCKS_AHEAD;

/**
 * Sends the Attr, then chunks cut at multiples of 4,000,000 bytes of the file, each with its CRC-32 first.
 * Ends with CORRUPT instead of wrong bytes. Stops at the next block after the session has ended, and at the
 * next chunk after the permission has ended.
 */
export function sendDownload(
  deps: DownloadDeps,
  caller: Caller,
  request: DownloadRequest,
  writer: Writer,
): Promise<void> {
  return deps.meter.later("read", () =>
    deps.slots.run(caller.identity.username, async () => {
      const reached = deps.access.reach(caller.identity, request.root, request.path, "read");
      const file = existingFile(reached);
      requireEtag(file, request.ifMatch);
      const from = offsetInside(file, request.offset);
      const leftBytes = file.sizeBytes - from;
      const wantedBytes =
        request.length === 0n || request.length > BigInt(leftBytes) ? leftBytes : Number(request.length);
      const content = deps.storage.openFile(file.id);
      const pump = new Pump(content, writer, caller);
      deps.stalls.add(pump);
      try {
        const sent = writer.message({ part: { case: "attr", value: attrAt(reached, file) } }, 0);
        if (sent !== true) await sent;
        await sendChunks(deps, { caller, reached, content, pump, writer }, from, from + wantedBytes);
      } catch (error) {
        logCorruption(deps.log, reached, file, error);
        throw error;
      } finally {
        deps.stalls.remove(pump);
        pump.letGo();
        content.close();
      }
    }),
  );
}

interface Sending {
  readonly caller: Caller;
  readonly reached: Reached;
  readonly content: FileContent;
  readonly pump: Pump;
  readonly writer: Writer;
}

async function sendChunks(deps: DownloadDeps, sending: Sending, from: number, end: number): Promise<void> {
  const { caller, reached, content, pump, writer } = sending;
  for (let offset = from; offset < end; ) {
    const chunkEnd = Math.min(end, offset - (offset % CHUNK_BYTES) + CHUNK_BYTES);
    if (offset !== from) {
      caller.renew();
      if (!deps.access.stillAllowed(caller.identity, reached, "read")) {
        throw noLongerShared();
      }
    }
    let crc32 = content.rangeCrc32(offset, chunkEnd - offset);
    if (crc32 instanceof Promise) crc32 = await crc32;
    const begun = writer.message(
      { part: { case: "chunk", value: { offset: BigInt(offset), crc32, data: NO_BYTES } } },
      chunkEnd - offset,
    );
    if (begun !== true) await begun;
    await pump.send(offset, chunkEnd, end);
    deps.telemetry.bytesRead(chunkEnd - offset);
    offset = chunkEnd;
  }
}

/** Moves blocks from the disk to the socket, reading ahead while others are on their way. */
class Pump {
  readonly #content: FileContent;
  readonly #writer: Writer;
  readonly #caller: Pick<Caller, "isLive" | "renew">;
  #ring: Buffer[] = [];
  #reads = 0;
  #ahead: { readonly offset: number; readonly block: Promise<Buffer> }[] = [];
  /** End of the read-ahead. */
  #aheadTo = 0;
  /** True once a whole block was taken: a client that reads nothing gets no read-ahead. */
  #isTaken = false;

  constructor(content: FileContent, writer: Writer, caller: Pick<Caller, "isLive" | "renew">) {
    this.#content = content;
    this.#writer = writer;
    this.#caller = caller;
  }

  /** Milliseconds since the client last took bytes. */
  get stalledMs(): number {
    return this.#writer.stalledMs;
  }

  /** Sends the bytes from offset to chunkEnd; the bytes after it, up to end, may be read ahead. */
  async send(offset: number, chunkEnd: number, end: number): Promise<void> {
    let at = offset;
    while (at < chunkEnd) {
      // A slow client takes minutes for a chunk; renew throws why the session has ended.
      if (!this.#caller.isLive()) this.#caller.renew();
      const block = await this.#take(at);
      const bytes = at + block.length > chunkEnd ? block.subarray(0, chunkEnd - at) : block;
      at += bytes.length;
      if (this.#isTaken) this.#readAhead(at, end);
      for (let done = 0; done < bytes.length; done += PIECE_BYTES) {
        const written = this.#writer.slice(bytes.subarray(done, done + PIECE_BYTES));
        if (written !== true) await written;
      }
      this.#isTaken = true;
    }
  }

  /** Drops the read-ahead and the buffers; they are read again when the client goes on. */
  letGo(): void {
    this.#ahead = [];
    this.#ring = [];
  }

  #take(offset: number): Promise<Buffer> {
    const ahead = this.#ahead.shift();
    if (ahead?.offset === offset) return ahead.block;
    this.#ahead = [];
    return this.#read(offset);
  }

  #read(offset: number): Promise<Buffer> {
    const turn = this.#reads++ % RING_BUFFERS;
    this.#ring[turn] ??= Buffer.allocUnsafeSlow(BLOCK_BYTES);
    return this.#content.readBlock(offset, this.#ring[turn]);
  }

  /** Keeps BLOCKS_AHEAD blocks in reading after the one that ends at `at`. */
  #readAhead(at: number, end: number): void {
    let offset = this.#ahead.length === 0 ? at : this.#aheadTo;
    while (this.#ahead.length < BLOCKS_AHEAD && offset < end) {
      const block = this.#read(offset);
      // The block may stay unread: the client can go away first.
      block.catch(() => undefined);
      this.#ahead.push({ offset, block });
      const within = offset % CHUNK_BYTES;
      offset += Math.min(BLOCK_BYTES - (within % BLOCK_BYTES), CHUNK_BYTES - within);
    }
    this.#aheadTo = offset;
  }
}

/** Checks once a second for downloads whose client reads nothing, so that they hold no blocks in memory. */
export class StallWatch {
  readonly #pumps = new Set<Pick<Pump, "stalledMs" | "letGo">>();
  readonly #stop: () => void;

  constructor(clock: Clock) {
    this.#stop = clock.every(DOWNLOAD_STALL_MS, () => {
      for (const pump of this.#pumps) {
        if (pump.stalledMs >= DOWNLOAD_STALL_MS) pump.letGo();
      }
    });
  }

  /** Watches a download; the stream slots bound their number. */
  add(pump: Pick<Pump, "stalledMs" | "letGo">): void {
    this.#pumps.add(pump);
  }

  /** Ends the watch over one download. */
  remove(pump: Pick<Pump, "stalledMs" | "letGo">): void {
    this.#pumps.delete(pump);
  }

  /** Ends the watch over all downloads. */
  stop(): void {
    this.#stop();
  }
}
