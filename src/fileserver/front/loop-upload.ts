// The half of an upload in the thread of its connection: takes messages, writes chunk files that it is lent.
import { toBinary } from "@bufbuild/protobuf";
import { INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import type { UploadOrder, UploadReport } from "#fileserver/transfers/transfer-messages.ts";
import { writeSlices } from "#storage/chunks/chunk-writer.ts";
import type { ChunkChecksums } from "#storage/chunks/content-checksums.ts";
import { ContentWriter, type GrowingFile } from "#storage/chunks/content-writer.ts";
import type { UploadShare } from "#storage/chunks/upload-budget.ts";
import type { ElsewhereBegin } from "#storage/contract/content-elsewhere.ts";
import { MalformedMessageError, StatusError } from "#wire/framing/status.ts";
import type { SlicedMessage, SlicedSource } from "#wire/grpc/sliced.ts";
import { bytesToCross } from "#wire/loops/batched-port.ts";
import type { GuestCall } from "#wire/loops/guest-call.ts";
import { packStatus } from "#wire/loops/packed-status.ts";
import { MESSAGES_AHEAD, MESSAGES_UNASKED } from "#wire/loops/remote-source.ts";
import { UploadRequestSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

type Source = SlicedSource<typeof UploadRequestSchema>;
type Message = SlicedMessage<typeof UploadRequestSchema>;

/** One upload. It decides nothing: what to take, where to write and when to end are orders. */
export class LoopUpload {
  readonly #call: GuestCall;
  readonly #requests: Source;
  readonly #budget: UploadShare;
  readonly #files = new Map<number, LoopFile>();
  #content: ContentWriter<LoopFile> | undefined;
  #asked = MESSAGES_UNASKED;
  #whenAsked: (() => void) | undefined;
  #sizeBytes = 0;
  /** True where messages are written before each is decided. */
  #isAhead = false;
  #message: Message | undefined;
  #whenTaken: (() => void) | undefined;
  #isStopped = false;

  constructor(call: GuestCall, requests: Source, budget: UploadShare) {
    this.#call = call;
    this.#requests = requests;
    this.#budget = budget;
    call.onTold = (message) => this.#obey(message as UploadOrder);
    call.onPull = (count) => this.#ask(count);
    call.onLost = () => this.#stop();
  }

  /** Passes the heads of messages on as they are asked for, until the last. */
  async run(): Promise<void> {
    const { id } = this.#call;
    try {
      for (;;) {
        await this.#untilAsked();
        const coming = this.#requests.next();
        const message = coming instanceof Promise ? await coming : coming;
        if (message === null) {
          this.#call.post({ op: "end", call: id });
          return;
        }
        const { payloadBytes } = message;
        const body = bytesToCross(toBinary(UploadRequestSchema, message.message)).bytes;
        const head = { op: "message", call: id, body, payloadBytes } as const;
        this.#message = message;
        if (this.#isFree) {
          this.#call.postLater(head);
          if (await this.#take()) continue;
          return;
        }
        const taken = new Promise<void>((resolve) => {
          this.#whenTaken = resolve;
        });
        this.#call.post(head);
        // An empty chunk is taken too; a header is not.
        if (message.message.part.case === "chunk") await taken;
        if (this.#isStopped) return;
      }
    } catch (error) {
      // The end of the call is known there already; a broken message is not.
      const status = error instanceof MalformedMessageError ? error.asAnswer() : error;
      if (status instanceof StatusError) {
        this.#call.post({ op: "broken", call: id, status: packStatus(status) });
      }
    }
  }

  #obey(order: UploadOrder): void {
    switch (order.op) {
      case "begin":
        this.#begin(order);
        break;
      case "take":
        void this.#take();
        break;
      case "file":
        this.#fileAt(order.position).lent(order.descriptor);
        break;
      case "flushed":
        this.#files.get(order.position)?.flushed();
        this.#files.delete(order.position);
        break;
      case "end":
        void this.#end();
        break;
      case "stop":
        this.#stop();
        void this.#untilIdle().then(() => this.#report({ op: "stopped" }));
    }
  }

  #begin(start: ElsewhereBegin): void {
    if (this.#isStopped) return;
    this.#content = new ContentWriter(
      {
        budget: this.#budget,
        sizeBytes: start.sizeBytes,
        begin: (position) => this.#fileAt(position),
        ended: () => undefined,
        failed: (error) => this.#failed(error),
      },
      start,
    );
    this.#sizeBytes = start.sizeBytes ?? 0;
    this.#isAhead = start.isAhead;
    if (start.isAhead) this.#ask(MESSAGES_AHEAD);
    if (this.#isFree) void this.#take();
  }

  /** Whether the message at hand may be written before it is decided: its bytes are reserved. */
  get #isFree(): boolean {
    if (!this.#isAhead || this.#isStopped || this.#message?.message.part.case !== "chunk") return false;
    return (this.#content?.receivedBytes ?? 0) + this.#message.payloadBytes <= this.#sizeBytes;
  }

  /** Writes the message at hand; false where the upload is over. */
  async #take(): Promise<boolean> {
    const content = this.#content;
    const payload = this.#message?.payload;
    if (content === undefined || payload === undefined) return false;
    try {
      content.beginMessage();
      for (;;) {
        let slice = payload.read();
        if (slice instanceof Promise) slice = await slice;
        if (this.#isStopped) return false;
        if (slice === null) break;
        const written = content.write(slice);
        if (written !== undefined) await written;
        if (this.#isStopped) return false;
      }
      const report: UploadReport = { op: "took", crc32: content.endMessage() };
      if (this.#isAhead) this.#call.postLater({ op: "tell", call: this.#call.id, message: report });
      else this.#report(report);
    } catch (error) {
      // The end of the call is known there already.
      if (!(error instanceof StatusError)) this.#failed(error);
      return false;
    }
    this.#message = undefined;
    this.#whenTaken?.();
    return true;
  }

  async #end(): Promise<void> {
    const content = this.#content;
    if (content === undefined || this.#isStopped) return;
    content.end();
    await this.#untilIdle();
    const isSmall = content.receivedBytes <= INLINE_FILE_MAX_BYTES;
    const inline = isSmall ? Uint8Array.from(content.inline) : undefined;
    this.#report({ op: "ended", content: { inline, crc32: content.fileCrc } });
  }

  #stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#content?.close();
    for (const file of this.#files.values()) file.lent(undefined);
    this.#whenTaken?.();
    this.#ask(1);
  }

  /** Resolves when no write is under way, and every whole chunk is reported. */
  async #untilIdle(): Promise<void> {
    await Promise.all(Array.from(this.#files.values(), (file) => file.idle()));
  }

  #fileAt(position: number): LoopFile {
    let file = this.#files.get(position);
    if (file === undefined) {
      file = new LoopFile(position, (report) => this.#report(report));
      this.#files.set(position, file);
    }
    return file;
  }

  #failed(error: unknown): void {
    if (this.#isStopped) return;
    const { code } = error as NodeJS.ErrnoException;
    this.#report({ op: "failed", text: errorText(error), code });
  }

  #report(report: UploadReport): void {
    this.#call.tell(report);
  }

  #ask(count: number): void {
    this.#asked += count;
    this.#whenAsked?.();
  }

  async #untilAsked(): Promise<void> {
    while (this.#asked === 0) {
      await new Promise<void>((resolve) => {
        this.#whenAsked = resolve;
      });
    }
    this.#asked--;
  }
}

/** A chunk file of the main thread, which makes, flushes and closes it. */
class LoopFile implements GrowingFile {
  readonly #position: number;
  readonly #report: (report: UploadReport) => void;
  readonly #descriptor = Promise.withResolvers<number>();
  readonly #flushed = Promise.withResolvers<void>();
  readonly #writes = new Set<Promise<void>>();
  #ending: Promise<void> | undefined;
  #length = 0;

  constructor(position: number, report: (report: UploadReport) => void) {
    this.#position = position;
    this.#report = report;
    this.#descriptor.promise.catch(() => undefined);
  }

  /** Takes the descriptor; undefined when there will be none. */
  lent(descriptor: number | undefined): void {
    if (descriptor !== undefined) this.#descriptor.resolve(descriptor);
    else this.#descriptor.reject(new Error("there is no file for the chunk"));
  }

  append(slices: readonly Buffer[], byteCount: number): Promise<void> {
    const at = this.#length;
    this.#length += byteCount;
    const write = this.#descriptor.promise.then((descriptor) =>
      writeSlices(descriptor, slices, byteCount, at),
    );
    this.#writes.add(write);
    const landed = (): boolean => this.#writes.delete(write);
    write.then(landed, landed);
    return write;
  }

  async finish({ crc32, blockCrcs }: ChunkChecksums): Promise<void> {
    const ending = Promise.all(this.#writes).then(() =>
      this.#report({
        op: "written",
        chunk: { position: this.#position, length: this.#length, crc32, blockCrcs },
      }),
    );
    this.#ending = ending;
    await ending;
    await this.#flushed.promise;
  }

  /** The main thread has flushed it, or will not. */
  flushed(): void {
    this.#flushed.resolve();
  }

  /** Resolves when no write is under way, and the chunk is reported if it has ended. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.#writes, this.#ending]);
  }
}
