// The byte part of downloads: blocks from the disk to the socket, read ahead while others are on their way.
import type { Clock } from "#base/clock.ts";
import { BLOCK_BYTES, CHUNK_BYTES } from "#base/limits.ts";
import type { FileContent } from "#storage/contract/file-content.ts";
import type { SlicedWriter } from "#wire/grpc/sliced.ts";
import type { DownloadResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { LARGE_MIN_BYTES, LARGE_READ_BYTES } from "./large-reads.ts";

/** A download whose client reads nothing for this long drops its read-ahead (decision D15). */
const DOWNLOAD_STALL_MS = 1_000;

/** Half of what may wait in a socket: while one piece is on its way, the next can be handed over. */
const PIECE_BYTES = 131_072;
/** Blocks read while one is being sent: with only one, a late turn of the thread pool stalls the stream. */
const BLOCKS_AHEAD = 2;
/** Large reads made meanwhile: sending one takes longer than any turn. */
const LARGE_READS_AHEAD = 1;
/**
 * Buffers besides those of the read-ahead, into which all reads go in turn: they cost no fresh memory. When a
 * read's last piece is accepted, less than one block's bytes (SEND_WINDOW_BYTES) still wait for the socket.
 * They belong to this read and to at most one before it, since only a chunk's last block is short. So the
 * buffers after the next in turn are free.
 */
const RING_BUFFERS = 3;

/** The blocks of a file. */
export interface BlockSource extends Pick<FileContent, "readBlock"> {
  /** End of what can be read at the moment; left out, all can. */
  readonly readableTo?: number;
}

/** The way to the client. */
export type PieceOutlet = Pick<SlicedWriter<typeof DownloadResponseSchema>, "slice" | "stalledMs">;

/** Moves blocks from the disk to the socket, reading ahead while others are on their way. */
export class Pump {
  readonly #content: BlockSource;
  readonly #writer: PieceOutlet;
  readonly #requireLive: () => void;
  readonly #takeLarge: () => (() => void) | undefined;
  /** Gives the place among the large reads back. */
  #giveLarge: (() => void) | undefined;
  #isSizeChosen = false;
  #readBytes: number = BLOCK_BYTES;
  #readsAhead = BLOCKS_AHEAD;
  #ring: Buffer[] = [];
  #reads = 0;
  #ahead: { readonly offset: number; readonly block: Promise<Buffer> }[] = [];
  /** End of the read-ahead. */
  #aheadTo = 0;
  /** A client that reads nothing gets no read-ahead. */
  #takenBytes = 0;

  /**
   * `requireLive` is called before each read, and throws why no more may be sent. `takeLarge` takes a place
   * among the large reads, if there is one.
   */
  constructor(
    content: BlockSource,
    writer: PieceOutlet,
    { requireLive, takeLarge }: { requireLive: () => void; takeLarge: () => (() => void) | undefined },
  ) {
    this.#content = content;
    this.#writer = writer;
    this.#requireLive = requireLive;
    this.#takeLarge = takeLarge;
  }

  /** Milliseconds since the client last took bytes. */
  get stalledMs(): number {
    return this.#writer.stalledMs;
  }

  /** Sends the bytes from offset to chunkEnd; the bytes after it, up to end, may be read ahead. */
  async send(offset: number, chunkEnd: number, end: number): Promise<void> {
    let at = offset;
    // A place among the large reads may have become free since the last chunk.
    this.#isSizeChosen = this.#readBytes === LARGE_READ_BYTES;
    while (at < chunkEnd) {
      // A slow client takes minutes for a chunk.
      this.#requireLive();
      const taken = this.#take(at);
      const block = taken instanceof Promise ? await taken : taken;
      const bytes = at + block.length > chunkEnd ? block.subarray(0, chunkEnd - at) : block;
      at += bytes.length;
      if (this.#takenBytes > 0) {
        if (!this.#isSizeChosen && this.#takenBytes >= CHUNK_BYTES) this.#chooseSize(end - at);
        this.#readAhead(at, Math.min(end, this.#content.readableTo ?? end));
      }
      for (let done = 0; done < bytes.length; done += PIECE_BYTES) {
        const written = this.#writer.slice(bytes.subarray(done, done + PIECE_BYTES));
        if (written !== true) await written;
      }
      this.#takenBytes += bytes.length;
    }
  }

  /** Drops the read-ahead and the buffers; they are read again when the client goes on. */
  letGo(): void {
    this.#ahead = [];
    this.#ring = [];
  }

  /** Ends the download: it needs no place any more. */
  end(): void {
    this.letGo();
    this.#giveLarge?.();
    this.#giveLarge = undefined;
  }

  /**
   * Reads more at a time from here on where much is left. It comes behind a whole chunk, since many downloads end
   * before, such as those of players that seek: what is read ahead for them is for nobody.
   */
  #chooseSize(leftBytes: number): void {
    this.#isSizeChosen = true;
    if (leftBytes < LARGE_MIN_BYTES) return;
    this.#giveLarge = this.#takeLarge();
    if (this.#giveLarge === undefined) return;
    this.#readBytes = LARGE_READ_BYTES;
    this.#readsAhead = LARGE_READS_AHEAD;
    this.#ring = [];
  }

  #take(offset: number): Buffer | Promise<Buffer> {
    const ahead = this.#ahead.shift();
    if (ahead?.offset === offset) return ahead.block;
    // The dropped reads go on, so that their buffers are not used again.
    if (ahead !== undefined) this.letGo();
    return this.#read(offset);
  }

  #read(offset: number): Buffer | Promise<Buffer> {
    return this.#content.readBlock(offset, () => this.#nextBuffer());
  }

  #nextBuffer(): Buffer {
    const turn = this.#reads++ % (RING_BUFFERS + this.#readsAhead);
    this.#ring[turn] ??= Buffer.allocUnsafeSlow(this.#readBytes);
    return this.#ring[turn];
  }

  /** Keeps as many reads under way after the one that ends at `at`. */
  #readAhead(at: number, end: number): void {
    let offset = this.#ahead.length === 0 ? at : this.#aheadTo;
    while (this.#ahead.length < this.#readsAhead && offset < end) {
      const block = Promise.resolve(this.#read(offset));
      // The block may stay unread: the client can go away first.
      block.catch(() => undefined);
      this.#ahead.push({ offset, block });
      const within = offset % CHUNK_BYTES;
      offset += Math.min(this.#readBytes - (within % BLOCK_BYTES), CHUNK_BYTES - within);
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
