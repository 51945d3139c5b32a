// The serving half of a call: its stream is in this thread, its decisions are made in the main thread.
import { EncodedReply } from "#wire/framing/encoded-reply.ts";
import type { StatusError } from "#wire/framing/status.ts";
import type { CallContext, CallLink } from "#wire/grpc/call-context.ts";
import type { PlacedCall } from "#wire/grpc/call-places.ts";
import { type BatchedPort, bytesToCross, crossedBytes } from "./batched-port.ts";
import type { FromLoop, JudgeMessage, ToLoop } from "./loop-messages.ts";
import { packStatus, unpackStatus } from "./packed-status.ts";

type Answer = Extract<ToLoop, { readonly op: "answer" }>;

/** A call that was judged, or is taken for its connection's user. The places connect it with its stream. */
export class GuestCall implements CallLink {
  readonly id: number;
  /** True where its connection counts for the caller. */
  readonly provesConnection: boolean;
  onTold: ((message: unknown) => void) | undefined;
  onLost: (() => void) | undefined;
  /** Called when the main thread asks for further messages. */
  onPull: ((count: number) => void) | undefined;
  /** Sends bytes of a reply stream. */
  onWrite: ((bytes: Uint8Array) => true | Promise<void>) | undefined;
  readonly #port: BatchedPort<FromLoop>;
  readonly #answer = Promise.withResolvers<EncodedReply | undefined>();
  #placed: PlacedCall | undefined;
  #writing: Promise<void> | undefined;
  #head: JudgeMessage | undefined;
  #headTurn = 0;
  #context: CallContext | undefined;

  /** `head` is the message with the call's headers, of the batch at hand, which its request may follow. */
  constructor(port: BatchedPort<FromLoop>, id: number, provesConnection: boolean, head?: JudgeMessage) {
    this.#port = port;
    this.id = id;
    this.provesConnection = provesConnection;
    this.#head = head;
    this.#headTurn = port.turn;
    // A call may end before its handler begins.
    this.#answer.promise.catch(() => undefined);
  }

  tell(message: unknown, transfer?: readonly ArrayBuffer[]): void {
    this.#port.post({ op: "tell", call: this.id, message }, transfer);
  }

  flow(): void {
    throw new TypeError("only the deciding half asks for messages");
  }

  /** Sends a message about the call with the next that is posted, or a little later. */
  postLater(message: FromLoop): void {
    this.#port.postLater(message);
  }

  /** Sends the call's request: with its headers where these are still here. */
  request(body: Uint8Array): void {
    const crossing = bytesToCross(body);
    const head = this.#head;
    if (head !== undefined && this.#port.turn === this.#headTurn) {
      head.body = crossing.bytes;
      if (crossing.transfer !== undefined) this.#port.transfer(crossing.transfer);
    } else {
      this.#port.post({ op: "request", call: this.id, body: crossing.bytes }, crossing.transfer);
    }
    this.#head = undefined;
  }

  /** Sends a message about the call. */
  post(message: FromLoop, transfer?: readonly ArrayBuffer[]): void {
    this.#port.post(message, transfer);
  }

  /** Connects the call with its stream. */
  place(call: PlacedCall): void {
    this.#placed = call;
  }

  /** The outcome of the handler in the main thread. */
  run(context: CallContext): Promise<EncodedReply | undefined> {
    this.#context = context;
    return this.#answer.promise;
  }

  /** The call has ended here before its answer. */
  cancelled(reason: StatusError): void {
    this.#port.post({ op: "cancel", call: this.id, status: packStatus(reason) });
  }

  /** Resolves when all bytes of the main thread are on their way; rejects when the call has ended. */
  whenWritten(): Promise<void> | undefined {
    return this.#writing;
  }

  /** Takes a message from the main thread. */
  take(message: ToLoop): void {
    if (message.op === "answer") this.#take(message);
    else if (message.op === "tell") this.onTold?.(message.message);
    else if (message.op === "pull") this.onPull?.(message.count);
    else if (message.op === "cancel") this.#placed?.cancel(unpackStatus(message.status));
    else if (message.op === "write") this.#write(message.bytes);
    else if (message.op === "headers") this.#sendHeaders(message.headers);
  }

  /** The stream is closed, and the handler has returned. */
  gone(): void {
    this.#port.post(this.id);
    this.onLost?.();
  }

  #take({ status, headers, trailers, body }: Answer): void {
    const context = this.#context;
    if (context !== undefined) {
      addAll(context.responseHeaders, headers);
      addAll(context.trailers, trailers);
    }
    const settle = (): void => {
      if (status !== undefined) this.#answer.reject(unpackStatus(status));
      else this.#answer.resolve(body === undefined ? undefined : new EncodedReply(crossedBytes(body)));
    };
    // Bytes of a reply stream go before its status.
    if (this.#writing === undefined) settle();
    else this.#writing.then(settle, settle);
  }

  /** In order. The main thread sends little here, and waits for the payload between. */
  #write(bytes: Uint8Array): void {
    const before = this.#writing ?? Promise.resolve();
    this.#writing = before.then(async () => {
      const written = this.onWrite?.(bytes);
      if (written instanceof Promise) await written;
    });
    // When the call has ended, the main thread hears so by its cancellation.
    this.#writing.catch(() => undefined);
  }

  #sendHeaders(headers: readonly string[]): void {
    if (this.#context === undefined) return;
    addAll(this.#context.responseHeaders, headers);
    this.#context.sendHeaders();
  }
}

/** Adds names and values in their wire form. */
function addAll(metadata: CallContext["trailers"], flat: readonly string[]): void {
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = flat[at] as string;
    const value = flat[at + 1] as string;
    metadata.append(name, name.endsWith("-bin") ? Buffer.from(value, "base64") : value);
  }
}
