// A download's bytes as its deciding half sees them where another thread has the connection.

import type { DownloadOrder, DownloadReport } from "#fileserver/transfers/transfer-messages.ts";
import type { FileContent, LentChunk } from "#storage/contract/storage.ts";
import type { CallLink } from "#wire/grpc/call-context.ts";
import type { SlicedWriter } from "#wire/grpc/sliced.ts";
import type { DownloadResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { Caller } from "./caller.ts";
import type { UploadWatch } from "./upload-watch.ts";

type Writer = SlicedWriter<typeof DownloadResponseSchema>;

/** Dependencies of a distant pump. */
export interface DistantPumpDeps {
  readonly link: CallLink;
  readonly signal: AbortSignal;
  readonly content: FileContent;
  readonly writer: Writer;
  readonly caller: Caller;
  /** Ends a chunk in the middle when its session ends. */
  readonly watch: Pick<UploadWatch, "over">;
}

/** Like a Pump, by orders to another thread, which reads the chunk files that this one lends. */
export class DistantPump {
  /** Stalls are looked after in the other thread. */
  readonly stalledMs = 0;
  readonly #deps: DistantPumpDeps;
  #sending: PromiseWithResolvers<DownloadReport> | undefined;
  #reason: Error | undefined;

  constructor(deps: DistantPumpDeps) {
    this.#deps = deps;
    const { link } = deps;
    link.onTold = (message) => this.#sending?.resolve(message as DownloadReport);
    link.onLost = () => this.#sending?.resolve({ isSent: false, fault: undefined });
  }

  /** Sends the bytes from offset to chunkEnd, which lie in one chunk. */
  async send(offset: number, chunkEnd: number): Promise<void> {
    const { content, writer, signal, watch, caller } = this.#deps;
    if (content.isSmall) {
      const bytes = await content.readBlock(offset);
      const written = writer.slice(bytes.subarray(0, chunkEnd - offset));
      if (written !== true) await written;
      return;
    }
    await watch.over(caller, this, () =>
      content.lend(offset, async (chunk) => {
        const { isSent, fault } = await this.#order(chunk, offset, chunkEnd);
        if (isSent) writer.sentElsewhere(chunkEnd - offset);
        return fault;
      }),
    );
    if (this.#reason !== undefined) throw this.#reason;
    signal.throwIfAborted();
  }

  /** Ends a chunk in the middle when its session has ended, or the node no longer serves. */
  giveUpIfOver(): void {
    const { caller, link } = this.#deps;
    if (caller.isLive() || this.#reason !== undefined) return;
    try {
      caller.renew();
    } catch (error) {
      this.#reason = error as Error;
      link.tell({ op: "stop" } satisfies DownloadOrder);
    }
  }

  /** The other thread looks after stalls. */
  letGo(): void {}

  /** Takes no further report. */
  end(): void {
    this.#deps.link.onTold = undefined;
  }

  async #order(chunk: LentChunk, from: number, to: number): Promise<DownloadReport> {
    if (this.#reason !== undefined || this.#deps.signal.aborted) return { isSent: false, fault: undefined };
    this.#sending = Promise.withResolvers();
    // A copy of exactly these bytes: a clone would take all of the buffer that they lie in.
    const blockCrcs = Uint8Array.from(chunk.blockCrcs);
    const order: DownloadOrder = { op: "send", chunk: { ...chunk, blockCrcs }, from, to };
    this.#deps.link.tell(order);
    return this.#sending.promise;
  }
}
