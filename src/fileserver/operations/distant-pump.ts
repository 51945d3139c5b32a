// A download's bytes as its deciding half sees them where another thread has the connection.

import { LARGE_MIN_BYTES } from "#fileserver/transfers/large-reads.ts";
import {
  chunkStart,
  type DownloadOrder,
  type DownloadReport,
} from "#fileserver/transfers/transfer-messages.ts";
import type { FileContent, LentChunk } from "#storage/contract/file-content.ts";
import type { CallLink } from "#wire/grpc/call-context.ts";
import type { SlicedWriter } from "#wire/grpc/sliced.ts";
import type { DownloadResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { AbandonedStreams } from "./abandoned-streams.ts";
import type { Caller } from "./caller.ts";

type Writer = SlicedWriter<typeof DownloadResponseSchema>;

/** Dependencies of a distant pump. */
export interface DistantPumpDeps {
  readonly link: CallLink;
  readonly signal: AbortSignal;
  readonly content: FileContent;
  readonly writer: Writer;
  readonly caller: Caller;
  /** Ends a chunk in the middle when its session ends. */
  readonly abandoned: Pick<AbandonedStreams, "watch">;
  /** Takes a place among the large reads, if there is one. */
  readonly takeLarge: () => (() => void) | undefined;
}

/** A chunk on its way to the other thread, or there. */
interface Lending {
  readonly startBytes: number;
  /** True when the other thread has the file, false when it will not get it. */
  readonly isThere: Promise<boolean>;
  /** Resolves when the file is free again, true when its bytes were sent; rejects with what is wrong with it. */
  readonly over: Promise<boolean>;
}

const NOT_SENT = { isSent: false, fault: undefined } as const;

/** Like a Pump, by orders to another thread, which reads the chunk files that this one lends. */
export class DistantPump {
  /** Stalls are looked after in the other thread. */
  readonly stalledMs = 0;
  readonly #deps: DistantPumpDeps;
  /** Chunks that the other thread has, by their starts. */
  readonly #lent = new Map<number, (report: Omit<DownloadReport, "startBytes">) => void>();
  /** The chunk after the one that is being sent, from which the other thread reads ahead. */
  #ahead: Lending | undefined;
  #hasSent = false;
  #giveLarge: (() => void) | undefined;
  #isEnded = false;
  #reason: Error | undefined;

  constructor(deps: DistantPumpDeps) {
    this.#deps = deps;
    const { link } = deps;
    link.onTold = (message) => {
      const report = message as DownloadReport;
      this.#lent.get(report.startBytes)?.(report);
    };
    link.onLost = () => {
      for (const giveBack of this.#lent.values()) giveBack(NOT_SENT);
    };
  }

  /** Sends the bytes from offset to chunkEnd, which lie in one chunk; those up to end may be read ahead. */
  async send(offset: number, chunkEnd: number, end: number): Promise<void> {
    const { content, writer, signal, abandoned, caller } = this.#deps;
    if (content.isSmall) {
      const bytes = await content.readBlock(offset);
      const written = writer.slice(bytes.subarray(0, chunkEnd - offset));
      if (written !== true) await written;
      return;
    }
    await abandoned.watch(caller, this, () => this.#sendChunk(offset, chunkEnd, end));
    if (this.#reason !== undefined) throw this.#reason;
    signal.throwIfAborted();
  }

  /** Ends a chunk in the middle when its session has ended, or the node no longer serves. */
  giveUpIfOver(): void {
    const { caller } = this.#deps;
    if (caller.isLive() || this.#reason !== undefined) return;
    try {
      caller.renew();
    } catch (error) {
      this.#reason = error as Error;
      this.#tell({ op: "stop" });
    }
  }

  /** The other thread looks after stalls. */
  letGo(): void {}

  /** Resolves when the other thread uses no file any more. */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#giveLarge?.();
    this.#giveLarge = undefined;
    const ahead = this.#ahead;
    if (ahead === undefined) return;
    this.#tell({ op: "stop" });
    // What is wrong with a chunk that is not sent is for its next reader to say.
    await ahead.over.catch(() => undefined);
  }

  async #sendChunk(from: number, to: number, end: number): Promise<void> {
    const lending = this.#ahead?.startBytes === chunkStart(from) ? this.#ahead : this.#lend(from);
    this.#ahead = undefined;
    if (await lending.isThere) {
      // A client that has taken a chunk is worth larger buffers.
      if (this.#hasSent && end - from >= LARGE_MIN_BYTES) this.#giveLarge ??= this.#deps.takeLarge();
      this.#tell({ op: "send", from, to, end, isLarge: this.#giveLarge !== undefined });
      if (to < end) this.#ahead = this.#lend(to);
    }
    if (!(await lending.over)) return;
    this.#hasSent = true;
    this.#deps.writer.sentElsewhere(to - from);
  }

  #lend(offset: number): Lending {
    const arrival = Promise.withResolvers<boolean>();
    const startBytes = chunkStart(offset);
    let isSent = false;
    const lending = this.#deps.content.lend(offset, async (chunk) => {
      if (this.#isOver) return undefined;
      const { promise, resolve } = Promise.withResolvers<Omit<DownloadReport, "startBytes">>();
      this.#lent.set(startBytes, resolve);
      this.#tell({ op: "lend", chunk: compact(chunk) });
      arrival.resolve(true);
      const report = await promise;
      this.#lent.delete(startBytes);
      isSent = report.isSent;
      return report.fault;
    });
    const over = lending.then(() => isSent);
    const ended = (): void => arrival.resolve(false);
    over.then(ended, ended);
    return { startBytes, isThere: arrival.promise, over };
  }

  get #isOver(): boolean {
    return this.#isEnded || this.#reason !== undefined || this.#deps.signal.aborted;
  }

  #tell(order: DownloadOrder): void {
    this.#deps.link.tell(order);
  }
}

/** A copy with exactly the bytes of its checksums: a clone would take all of the buffer that they lie in. */
function compact(chunk: LentChunk): LentChunk {
  return { ...chunk, blockCrcs: Uint8Array.from(chunk.blockCrcs) };
}
