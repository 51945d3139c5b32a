// One call on the client, from its first byte to its status.
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import { type Inbox, type InboxDeps, MessageInbox } from "#wire/framing/inbox.ts";
import { TRANSPARENT_RETRIES } from "#wire/framing/limits.ts";
import { Metadata, type MetadataInit } from "#wire/framing/metadata.ts";
import { type ReplyListeners, ReplyMetadata } from "#wire/framing/reply-metadata.ts";
import { formatTimeout, isGrpcContentType, TIMER_MAX_MS } from "#wire/framing/request-headers.ts";
import { type RequestEncoder, type Requests, requestsOf, type Wire } from "#wire/framing/requests.ts";
import { resetStream, statusOfReset } from "#wire/framing/reset.ts";
import { SendQueue } from "#wire/framing/send-queue.ts";
import { type ReplyDecoder, SingleMessage } from "#wire/framing/single-message.ts";
import type { SlicedField } from "#wire/framing/sliced-field.ts";
import { Code, StatusError, statusOf, statusOfHttp } from "#wire/framing/status.ts";
import { type ClientStreamListener, listenAsClient } from "#wire/framing/stream-events.ts";
import { type CallWaiter, type ChannelCore, intercept, type OutgoingCall } from "./channel-core.ts";
import { refusedUnseen } from "./connect-failure.ts";
import { SlicedInbox, SlicedSendQueue, type SlicedWriter } from "./sliced.ts";
import type { Transport } from "./transport.ts";

/** A caller's options for one call. */
export interface CallOptions extends ReplyListeners {
  readonly metadata?: Metadata | MetadataInit;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Waits through failed attempts to connect instead of failing at once. */
  readonly waitForReady?: boolean;
  /** Compresses messages with gzip, and accepts it in the answer; the sliced form is never compressed. */
  readonly compress?: boolean;
}

const ANSWERED = new StatusError(Code.CANCELLED, "the server has answered already");
const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/** A call of any kind. Use it once: start it in one of its forms, then read its replies. */
export class ClientCall implements CallWaiter, OutgoingCall, ClientStreamListener {
  readonly method: DescMethod;
  readonly waitForReady: boolean;
  readonly timeoutMs: number | undefined;
  readonly #core: ChannelCore;
  readonly #options: CallOptions;
  readonly #deadlineMs: number | undefined;
  #metadata: Metadata | undefined;
  #transport: Transport | undefined;
  #stream: ClientHttp2Stream | undefined;
  #retriesLeft = TRANSPARENT_RETRIES;
  /** Undefined when they come through a writer. */
  #requests: Requests | Buffer | undefined;
  #outlet: SendQueue | undefined;
  #encoding = "identity";
  #inbox: Inbox<unknown> | undefined;
  #slicing: SlicedField<DescMessage> | undefined;
  #single: SingleMessage | undefined;
  #gotHeaders = false;
  #inputEnded = false;
  readonly #replyMetadata: ReplyMetadata;
  #rawTrailers: readonly string[] = [];
  /** From the trailers: null is OK. */
  #status: StatusError | null | undefined;
  #isWaiting = false;
  #isSettled = false;
  #cancelDeadline: (() => void) | undefined;
  #onAbort: (() => void) | undefined;
  #settled: ((error: StatusError | undefined) => void) | undefined;
  #opened: PromiseWithResolvers<SendQueue> | undefined;
  #sliced: SlicedSendQueue<DescMessage> | undefined;
  #reply: Promise<unknown> | undefined;

  constructor(core: ChannelCore, method: DescMethod, options: CallOptions = {}) {
    this.#core = core;
    this.method = method;
    this.#options = options;
    this.#replyMetadata = new ReplyMetadata(options);
    this.waitForReady = options.waitForReady === true;
    this.timeoutMs = options.timeoutMs;
    if (options.timeoutMs !== undefined) this.#deadlineMs = core.clock.steadyMs() + options.timeoutMs;
  }

  get metadata(): Metadata {
    this.#metadata ??= new Metadata();
    return this.#metadata;
  }

  get address(): string | undefined {
    return this.#transport?.address;
  }

  /** The headers and trailers of the reply. */
  get replyMetadata(): ReplyMetadata {
    return this.#replyMetadata;
  }

  /** Runs a call with one reply; `decode` and `encode` replace the general ones. */
  startUnary(request: unknown, decode?: ReplyDecoder, encode?: RequestEncoder): Promise<unknown> {
    try {
      this.#sendFrom(request, encode);
    } catch (error) {
      return Promise.reject(asError(error));
    }
    return this.#startSingle(decode);
  }

  /** Runs a call with a stream of replies. */
  startStream(request: unknown, slicing: SlicedField<DescMessage> | undefined): Inbox<unknown> {
    this.#slicing = slicing;
    // Encoding errors of the request come out of the stream, like all others.
    const inbox = this.#makeInbox("identity");
    this.#inbox = inbox;
    try {
      this.#sendFrom(request);
      this.#begin(undefined);
    } catch (error) {
      this.#fail(error as StatusError);
    }
    return inbox;
  }

  /** Starts a client stream whose requests come through a writer. */
  async startSlicedUpload(field: SlicedField<DescMessage>): Promise<SlicedWriter<DescMessage>> {
    this.#readMetadata();
    this.#opened = Promise.withResolvers();
    const { promise } = this.#opened;
    this.#reply = this.#startSingle();
    // Also rejects through the writer and through finish.
    this.#reply.catch((error: unknown) => this.#opened?.reject(error));
    const outlet = await promise;
    this.#sliced = new SlicedSendQueue(field, outlet, this.#core.limits.sendMessageBytes, () => undefined);
    return this.#sliced;
  }

  /** Ends the requests of a sliced upload and waits for the reply. */
  finishSlicedUpload(): Promise<MessageShape<DescMessage>> {
    if (!this.#isSettled) {
      this.#sliced?.finish();
      this.#stream?.end();
    }
    return this.#reply as Promise<MessageShape<DescMessage>>;
  }

  /** Gives the call up: it ends in CANCELLED, also on the server. */
  cancel(): void {
    this.#fail(new StatusError(Code.CANCELLED, "cancelled"));
  }

  /** Takes a connection; the channel or the wait for it calls this. */
  ready(transport: Transport): void {
    if (this.#isSettled) return;
    this.#transport = transport;
    this.#gotHeaders = false;
    let stream: ClientHttp2Stream;
    try {
      stream = transport.request(this.#headerList(transport));
    } catch (cause) {
      // HTTP/2 refuses some metadata, such as two values of a single-valued header.
      return this.#fail(new StatusError(Code.INTERNAL, "the metadata cannot be sent", { cause }));
    }
    this.#stream = stream;
    listenAsClient(stream, this);
    this.#outlet = undefined;
    this.#opened?.resolve(this.#openSendQueue());
    const requests = this.#requests;
    if (requests instanceof Uint8Array) stream.end(requests);
    else requests?.send(this.#wireOf(stream));
  }

  #wireOf(stream: ClientHttp2Stream): Wire {
    return {
      stream,
      outlet: () => this.#openSendQueue(),
      isOver: () => this.#isSettled || this.#stream !== stream,
      fail: (error) => this.#fail(error),
    };
  }

  /** Ends the call without a connection. */
  failed(error: StatusError): void {
    this.#fail(error);
  }

  onResponse(
    stream: ClientHttp2Stream,
    headers: IncomingHttpHeaders,
    raw: readonly string[],
    isAll: boolean,
  ): void {
    if (stream !== this.#stream || this.#isSettled) return;
    this.#gotHeaders = true;
    // A status in the headers counts only when they are the whole answer.
    const status = isAll ? statusOf(raw) : undefined;
    if (status !== undefined) {
      this.#rawTrailers = raw;
      this.#status = status;
      return;
    }
    const httpStatus = Number(headers[":status"]);
    if (httpStatus !== 200) {
      this.#fail(statusOfHttp(httpStatus));
    } else if (!isGrpcContentType(headers["content-type"])) {
      this.#fail(new StatusError(Code.UNKNOWN, "the answer is not gRPC"));
    } else {
      this.#takeHeaders(raw);
    }
  }

  onTrailers(stream: ClientHttp2Stream, raw: readonly string[]): void {
    if (stream !== this.#stream) return;
    this.#rawTrailers = raw;
    this.#status = statusOf(raw);
    if (this.#status === undefined)
      this.#status = new StatusError(Code.UNKNOWN, "trailers without grpc-status");
    if (this.#inputEnded) this.#conclude();
  }

  onData(chunk: Buffer): void {
    if (this.#isSettled) return;
    try {
      if (this.#inbox !== undefined) this.#inbox.push(chunk);
      else this.#single?.push(chunk);
    } catch (error) {
      this.#fail(error as StatusError);
    }
  }

  onEnd(stream: ClientHttp2Stream): void {
    if (stream !== this.#stream) return;
    this.#inputEnded = true;
    // Without trailers the following close has the reason.
    if (this.#status !== undefined) this.#conclude();
  }

  onClose(stream: ClientHttp2Stream): void {
    if (stream !== this.#stream || this.#isSettled) return;
    if (this.#status !== undefined && (this.#inputEnded || this.#status !== null)) return this.#conclude();
    const code = stream.rstCode ?? constants.NGHTTP2_INTERNAL_ERROR;
    const wasRefused = code === constants.NGHTTP2_REFUSED_STREAM && !this.#gotHeaders;
    const isReplayable = this.#requests instanceof Uint8Array || this.#requests?.isReplayable === true;
    if (wasRefused && isReplayable && this.#retriesLeft-- > 0) return this.#seekTransport();
    if (this.#deadlineMs !== undefined && this.#core.clock.steadyMs() >= this.#deadlineMs) {
      // The server's clock reached the deadline a moment earlier.
      return this.#fail(new StatusError(Code.DEADLINE_EXCEEDED, "deadline exceeded"));
    }
    if (wasRefused) return this.#fail(refusedUnseen());
    const isLost = this.#transport?.isUsable === false;
    this.#fail(isLost ? new StatusError(Code.UNAVAILABLE, "the connection was lost") : statusOfReset(code));
  }

  #headerList(transport: Transport): readonly string[] {
    const fixed = transport.headersOf(this.method);
    const isPlain = this.#options.compress !== true && this.#deadlineMs === undefined;
    if (isPlain && this.#metadata === undefined) return fixed;
    const headers = fixed.slice();
    if (this.#options.compress === true)
      headers.push("grpc-encoding", "gzip", "grpc-accept-encoding", "identity,gzip");
    if (this.#deadlineMs !== undefined) {
      headers.push("grpc-timeout", formatTimeout(this.#deadlineMs - this.#core.clock.steadyMs()));
    }
    this.#metadata?.appendTo(headers);
    return headers;
  }

  #sendFrom(request: unknown, encode?: RequestEncoder): void {
    this.#readMetadata();
    const compresses = this.#options.compress === true;
    const { sendMessageBytes } = this.#core.limits;
    this.#requests = requestsOf(this.method, request, compresses, sendMessageBytes, encode);
  }

  /** Checks the caller's metadata while a mistake in it can still be thrown at the caller. */
  #readMetadata(): void {
    if (this.#options.metadata !== undefined) this.#metadata = new Metadata(this.#options.metadata);
  }

  #openSendQueue(): SendQueue {
    return (this.#outlet ??= new SendQueue(this.#stream as ClientHttp2Stream, this.#core.clock));
  }

  #startSingle(decode?: ReplyDecoder): Promise<unknown> {
    const single = new SingleMessage(this.#core);
    this.#single = single;
    return new Promise((resolve, reject) => {
      this.#begin((error) => {
        if (error !== undefined) return reject(error);
        let reply: unknown;
        try {
          reply = single.take(this.method.output, this.#encoding, decode);
        } catch (failure) {
          return reject(asError(failure));
        }
        return resolve(reply);
      });
    });
  }

  /** Starts deadline, cancellation and interceptors, then the call. `settled` receives its end. */
  #begin(settled: ((error: StatusError | undefined) => void) | undefined): void {
    this.#settled = settled;
    const { signal } = this.#options;
    if (signal !== undefined) {
      if (signal.aborted) return this.cancel();
      this.#onAbort = () => this.cancel();
      signal.addEventListener("abort", this.#onAbort, { once: true });
    }
    if (this.timeoutMs !== undefined) {
      this.#cancelDeadline = this.#core.clock.after(Math.min(this.timeoutMs, TIMER_MAX_MS), () =>
        this.#fail(new StatusError(Code.DEADLINE_EXCEEDED, "deadline exceeded")),
      );
    }
    const { interceptors } = this.#core;
    if (interceptors.length === 0) return this.#seekTransport();
    let hasStarted = false;
    const start = (): Promise<void> => {
      hasStarted = true;
      return new Promise((resolve, reject) => {
        this.#settled = (error) => (error === undefined ? resolve() : reject(error));
        if (this.#isSettled) reject(new StatusError(Code.CANCELLED, "cancelled"));
        else this.#seekTransport();
      });
    };
    intercept(interceptors, this, start).then(
      () => settled?.(undefined),
      (error: unknown) => {
        // A failure before the call's start goes to the caller alone.
        if (hasStarted) settled?.(error as StatusError);
        else this.#fail(error as StatusError);
      },
    );
    return undefined;
  }

  #seekTransport(): void {
    const transport = this.#core.current();
    if (transport !== undefined) return this.ready(transport);
    this.#isWaiting = true;
    return this.#core.wait(this);
  }

  #makeInbox(encoding: string): Inbox<unknown> {
    const deps: InboxDeps = {
      stream: { pause: () => this.#stream?.pause(), resume: () => this.#stream?.resume() },
      limits: this.#core.limits,
      budget: this.#core.budget,
      unfolder: this.#core.unfolder,
      encoding,
      onLeave: () => this.cancel(),
    };
    return this.#slicing === undefined
      ? new MessageInbox(this.method.output, deps)
      : new SlicedInbox(this.method.output, this.#slicing, deps);
  }

  #takeHeaders(raw: readonly string[]): void {
    for (let i = 0; i + 1 < raw.length; i += 2) {
      if (raw[i] === "grpc-encoding") this.#encoding = raw[i + 1] as string;
    }
    if (this.#encoding !== "identity" && this.#encoding !== "gzip") {
      this.#fail(new StatusError(Code.INTERNAL, `the reply has the unknown encoding ${this.#encoding}`));
      return;
    }
    this.#inbox?.setEncoding(this.#encoding);
    this.#replyMetadata.tookHeaders(raw);
  }

  /** Ends the call once all messages and the status have arrived. */
  #conclude(): void {
    if (this.#isSettled) return;
    const error = this.#status ?? undefined;
    try {
      this.#inbox?.end(error);
    } catch (broken) {
      return this.#fail(broken as StatusError);
    }
    this.#settle(error);
  }

  /** Ends the call from this side. */
  #fail(error: StatusError): void {
    if (this.#isSettled) return;
    this.#inbox?.fail(error);
    this.#settle(error);
    if (this.#stream !== undefined) resetStream(this.#stream);
  }

  #settle(error: StatusError | undefined): void {
    this.#isSettled = true;
    this.#cancelDeadline?.();
    if (this.#onAbort !== undefined) this.#options.signal?.removeEventListener("abort", this.#onAbort);
    if (this.#isWaiting) this.#core.forget(this);
    if (error !== undefined) this.#single?.release();
    if (this.#outlet !== undefined) this.#outlet.fail(error ?? ANSWERED);
    this.#replyMetadata.ended(this.#rawTrailers);
    // Unread requests are not sent: the server has answered.
    if (this.#stream !== undefined && !this.#stream.writableEnded) resetStream(this.#stream);
    this.#settled?.(error);
  }
}
