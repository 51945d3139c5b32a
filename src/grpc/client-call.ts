// One call on the client, from its first byte to its status.
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import {
  create,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { Clock } from "#base/clock.ts";
import { compress, frame, type MessageBudget } from "./frames.ts";
import { type Inbox, type InboxDeps, MessageInbox } from "./inbox.ts";
import { type ChannelLimits, SEND_WINDOW_BYTES } from "./limits.ts";
import { Metadata, type MetadataInit } from "./metadata.ts";
import { Outlet } from "./outlet.ts";
import { formatTimeout, isGrpcContentType } from "./request-headers.ts";
import { resetStream } from "./reset.ts";
import { SingleMessage } from "./single-message.ts";
import { SlicedInbox, SlicedOutlet, type SlicedWriter } from "./sliced.ts";
import type { SlicedField } from "./sliced-field.ts";
import { Code, StatusError, statusOf, statusOfHttp } from "./status.ts";
import type { Transport } from "./transport.ts";

/** What a caller may say about one call. */
export interface CallOptions {
  readonly metadata?: Metadata | MetadataInit;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Wait through failed attempts to connect instead of failing at once. */
  readonly waitForReady?: boolean;
  /** Send messages with gzip; the sliced form never is. */
  readonly compress?: boolean;
  readonly onHeaders?: (headers: Metadata) => void;
  readonly onTrailers?: (trailers: Metadata) => void;
}

/** What a client interceptor sees of a call. */
export interface OutgoingCall {
  readonly method: DescMethod;
  /** What will be sent; add to it before calling `next`. */
  readonly metadata: Metadata;
  readonly timeoutMs: number | undefined;
  /** The server that answered, once connected. */
  readonly address: string | undefined;
}

/**
 * Code around every call, the first of the list outermost. `next` starts the rest and resolves when the call has ended in
 * OK, or rejects with its StatusError. What it throws before `next` is the call's outcome; afterwards, that of a call with one reply.
 */
export type ClientInterceptor = (call: OutgoingCall, next: () => Promise<void>) => Promise<void>;

/** A call that waits for a connection. */
export interface CallWaiter {
  readonly waitForReady: boolean;
  ready(transport: Transport): void;
  failed(error: StatusError): void;
}

/** What a call needs of its channel. */
export interface ChannelCore {
  readonly limits: ChannelLimits;
  readonly clock: Clock;
  readonly budget: MessageBudget;
  readonly interceptors: readonly ClientInterceptor[];
  readonly scheme: "http" | "https";
  readonly serverName: string | undefined;
  current(): Transport | undefined;
  wait(waiter: CallWaiter): void;
  forget(waiter: CallWaiter): void;
}

/** How often a call that no server has looked at is sent again by itself. */
const TRANSPARENT_RETRIES = 3;

const CALL = Symbol("call");
type CallStream = ClientHttp2Stream & { [CALL]?: ClientCall };

function onResponse(this: CallStream, headers: IncomingHttpHeaders, flags: number, raw: string[]): void {
  this[CALL]?.onResponse(this, headers, raw, (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0);
}
function onTrailers(this: CallStream, _headers: IncomingHttpHeaders, _flags: number, raw: string[]): void {
  this[CALL]?.onTrailers(this, raw);
}
function onData(this: CallStream, chunk: Buffer): void {
  this[CALL]?.onData(chunk);
}
function onEnd(this: CallStream): void {
  this[CALL]?.onEnd(this);
}
function onClose(this: CallStream): void {
  this[CALL]?.onClose(this);
}
/** Every failure of a stream also closes it, which is what the call looks at. */
function onError(): void {}

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

const RESET_CODES: Readonly<Record<number, Code>> = {
  [constants.NGHTTP2_REFUSED_STREAM]: Code.UNAVAILABLE,
  [constants.NGHTTP2_CANCEL]: Code.CANCELLED,
  [constants.NGHTTP2_ENHANCE_YOUR_CALM]: Code.RESOURCE_EXHAUSTED,
  [constants.NGHTTP2_INADEQUATE_SECURITY]: Code.PERMISSION_DENIED,
};

/** A call of any kind. Use it once: start it in one of its ways, then read what it gives. */
export class ClientCall implements CallWaiter, OutgoingCall {
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
  /** Sends the requests once a stream is open. */
  #send: () => void = () => undefined;
  /** False once a request was taken that cannot be had again. */
  #isReplayable = true;
  #outlet: Outlet | undefined;
  #encoding = "identity";
  #inbox: Inbox<unknown> | undefined;
  #slicing: SlicedField<DescMessage> | undefined;
  #single: SingleMessage | undefined;
  #gotHeaders = false;
  #inputEnded = false;
  #rawHeaders: readonly string[] = [];
  #rawTrailers: readonly string[] = [];
  /** From the trailers: null is OK. */
  #status: StatusError | null | undefined;
  #isWaiting = false;
  #isSettled = false;
  #cancelDeadline: (() => void) | undefined;
  #onAbort: (() => void) | undefined;
  #settled: ((error: StatusError | undefined) => void) | undefined;
  #headersKnown: PromiseWithResolvers<Metadata> | undefined;
  #trailersKnown: PromiseWithResolvers<Metadata> | undefined;
  #opened: PromiseWithResolvers<Outlet> | undefined;
  #sliced: SlicedOutlet<DescMessage> | undefined;
  #reply: Promise<MessageShape<DescMessage>> | undefined;

  constructor(core: ChannelCore, method: DescMethod, options: CallOptions = {}) {
    this.#core = core;
    this.method = method;
    this.#options = options;
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

  /** Resolves with the response headers, empty ones when the call ended without. */
  get headers(): Promise<Metadata> {
    this.#headersKnown ??= Promise.withResolvers();
    if (this.#gotHeaders || this.#isSettled) this.#headersKnown.resolve(Metadata.fromRaw(this.#rawHeaders));
    return this.#headersKnown.promise;
  }

  /** Resolves with the trailers when the call has ended, well or not. */
  get trailers(): Promise<Metadata> {
    this.#trailersKnown ??= Promise.withResolvers();
    if (this.#isSettled) this.#trailersKnown.resolve(Metadata.fromRaw(this.#rawTrailers));
    return this.#trailersKnown.promise;
  }

  /** Runs a call with one reply. */
  startUnary(request: unknown): Promise<MessageShape<DescMessage>> {
    try {
      this.#sendFrom(request);
    } catch (error) {
      return Promise.reject(asError(error));
    }
    return this.#startSingle();
  }

  /** Runs a call with a stream of replies. */
  startStream(request: unknown, slicing: SlicedField<DescMessage> | undefined): Inbox<unknown> {
    this.#slicing = slicing;
    // Encoding errors of the request come out of the stream, as all others do.
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
    this.#send = () => this.#opened?.resolve(this.#openOutlet());
    this.#isReplayable = false;
    this.#reply = this.#startSingle();
    // Also rejects through the writer and through finish.
    this.#reply.catch((error: unknown) => this.#opened?.reject(error));
    const outlet = await promise;
    this.#sliced = new SlicedOutlet(field, outlet, this.#core.limits.sendMessageBytes, () => undefined);
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

  /** Gives the call up: it ends in CANCELLED, and the server hears of it. */
  cancel(): void {
    this.#fail(new StatusError(Code.CANCELLED, "cancelled"));
  }

  /** A connection is there: the channel, or the wait for it, calls this. */
  ready(transport: Transport): void {
    if (this.#isSettled) return;
    this.#transport = transport;
    this.#gotHeaders = false;
    const stream: CallStream = transport.request(this.#headerList(transport));
    this.#stream = stream;
    stream[CALL] = this;
    stream.on("error", onError);
    stream.on("response", onResponse);
    stream.on("data", onData);
    stream.on("trailers", onTrailers);
    stream.on("end", onEnd);
    stream.on("close", onClose);
    this.#outlet = undefined;
    this.#send();
  }

  /** No connection could be had. */
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
    // Without trailers the close that follows says why.
    if (this.#status !== undefined) this.#conclude();
  }

  onClose(stream: ClientHttp2Stream): void {
    if (stream !== this.#stream || this.#isSettled) return;
    if (this.#status !== undefined && (this.#inputEnded || this.#status !== null)) {
      this.#conclude();
      return;
    }
    const code = stream.rstCode ?? constants.NGHTTP2_INTERNAL_ERROR;
    const isUnseen = code === constants.NGHTTP2_REFUSED_STREAM || this.#transport?.isUsable === false;
    if (code === constants.NGHTTP2_REFUSED_STREAM && !this.#gotHeaders && this.#isReplayable) {
      if (this.#retriesLeft-- > 0) {
        this.#seekTransport();
        return;
      }
    }
    if (this.#deadlineMs !== undefined && this.#core.clock.steadyMs() >= this.#deadlineMs) {
      // The server looked at the clock a moment before we did.
      return this.#fail(new StatusError(Code.DEADLINE_EXCEEDED, "deadline exceeded"));
    }
    const status = isUnseen ? Code.UNAVAILABLE : (RESET_CODES[code] ?? Code.INTERNAL);
    this.#fail(new StatusError(status, `the stream was closed without a status (HTTP/2 code ${code})`));
  }

  #headerList(transport: Transport): readonly string[] {
    const fixed = transport.headersOf(this.method, this.#core.scheme, this.#core.serverName);
    const isPlain = this.#options.compress !== true && this.#deadlineMs === undefined;
    if (isPlain && this.#metadata === undefined) return fixed;
    const headers = fixed.slice();
    if (this.#options.compress === true) headers.push("grpc-encoding", "gzip");
    if (this.#deadlineMs !== undefined) {
      headers.push("grpc-timeout", formatTimeout(this.#deadlineMs - this.#core.clock.steadyMs()));
    }
    this.#metadata?.appendTo(headers);
    return headers;
  }

  /** Prepares how requests are sent: one message, or a stream of them. */
  #sendFrom(request: unknown): void {
    this.#readMetadata();
    const { methodKind } = this.method;
    if (methodKind === "client_streaming" || methodKind === "bidi_streaming") {
      const requests = (request as AsyncIterable<unknown>)[Symbol.asyncIterator]();
      this.#isReplayable = true;
      this.#send = () => void this.#sendAll(requests, this.#openOutlet());
      return;
    }
    const body = this.#encode(request);
    if (this.#options.compress === true) {
      this.#send = () =>
        void compress(body).then(
          (compressed) => this.#sendOnly(frame(compressed, true)),
          (error: unknown) => this.#fail(new StatusError(Code.INTERNAL, "cannot compress", { cause: error })),
        );
    } else {
      const framed = frame(body, false);
      this.#send = () => this.#sendOnly(framed);
    }
  }

  /** Checks the caller's metadata while a mistake in it can still be thrown at the caller. */
  #readMetadata(): void {
    if (this.#options.metadata !== undefined) this.#metadata = new Metadata(this.#options.metadata);
  }

  #openOutlet(): Outlet {
    this.#outlet ??= new Outlet(this.#stream as ClientHttp2Stream, this.#core.clock);
    return this.#outlet;
  }

  #sendOnly(framed: Buffer): void {
    const stream = this.#stream;
    if (this.#isSettled || stream === undefined) return;
    if (framed.length <= SEND_WINDOW_BYTES) stream.end(framed);
    else {
      // A failure here is one of the stream's, which its close reports.
      void Promise.resolve(this.#openOutlet().write(framed)).then(
        () => stream.end(),
        () => undefined,
      );
    }
  }

  async #sendAll(requests: AsyncIterator<unknown>, outlet: Outlet): Promise<void> {
    const stream = this.#stream;
    try {
      while (!this.#isSettled) {
        const next = await requests.next();
        if (next.done === true) break;
        this.#isReplayable = false;
        const body = this.#encode(next.value);
        const framed =
          this.#options.compress === true ? frame(await compress(body), true) : frame(body, false);
        if (this.#isSettled) break;
        const written = outlet.write(framed);
        if (written !== true) await written;
      }
      if (!this.#isSettled) stream?.end();
      else void requests.return?.();
    } catch (error) {
      void requests.return?.();
      // After the end of the call it has its outcome, and a closed stream reports itself.
      if (this.#isSettled || stream?.destroyed === true) return;
      this.#fail(
        error instanceof StatusError
          ? error
          : new StatusError(Code.CANCELLED, "the requests failed", { cause: error }),
      );
    }
  }

  #encode(request: unknown): Uint8Array {
    const message = create(this.method.input, request as MessageInitShape<DescMessage>);
    const body = toBinary(this.method.input, message);
    const { sendMessageBytes } = this.#core.limits;
    if (body.length > sendMessageBytes) {
      throw new StatusError(
        Code.RESOURCE_EXHAUSTED,
        `request of ${body.length} bytes is larger than the limit of ${sendMessageBytes}`,
      );
    }
    return body;
  }

  #startSingle(): Promise<MessageShape<DescMessage>> {
    const single = new SingleMessage(this.#core.limits, this.#core.budget);
    this.#single = single;
    return new Promise((resolve, reject) => {
      this.#begin((error) => {
        if (error !== undefined) return reject(error);
        try {
          resolve(single.take(this.method.output, this.#encoding));
        } catch (failure) {
          reject(asError(failure));
        }
      });
    });
  }

  /** Starts deadline, cancellation and interceptors, then the call. `settled` hears how it ended. */
  #begin(settled: ((error: StatusError | undefined) => void) | undefined): void {
    this.#settled = settled;
    const { signal } = this.#options;
    if (signal !== undefined) {
      if (signal.aborted) return this.cancel();
      this.#onAbort = () => this.cancel();
      signal.addEventListener("abort", this.#onAbort, { once: true });
    }
    if (this.timeoutMs !== undefined) {
      this.#cancelDeadline = this.#core.clock.after(this.timeoutMs, () =>
        this.#fail(new StatusError(Code.DEADLINE_EXCEEDED, "deadline exceeded")),
      );
    }
    const { interceptors } = this.#core;
    if (interceptors.length === 0) return this.#seekTransport();
    this.#intercept(interceptors, settled);
  }

  #intercept(
    interceptors: readonly ClientInterceptor[],
    settled: ((error: StatusError | undefined) => void) | undefined,
  ): void {
    let hasStarted = false;
    const run = (at: number): Promise<void> => {
      const interceptor = interceptors[at];
      if (interceptor !== undefined) return interceptor(this, () => run(at + 1));
      hasStarted = true;
      return new Promise((resolve, reject) => {
        this.#settled = (error) => (error === undefined ? resolve() : reject(error));
        if (this.#isSettled) reject(new StatusError(Code.CANCELLED, "cancelled"));
        else this.#seekTransport();
      });
    };
    // A failure before the interceptors are through has nobody to hear it but the caller.
    this.#settled = settled;
    run(0).then(
      () => settled?.(undefined),
      (error: unknown) => {
        const status =
          error instanceof StatusError
            ? error
            : new StatusError(Code.UNKNOWN, "interceptor failed", { cause: error });
        if (hasStarted) settled?.(status);
        else this.#fail(status);
      },
    );
  }

  #seekTransport(): void {
    const transport = this.#core.current();
    if (transport === undefined) {
      this.#isWaiting = true;
      this.#core.wait(this);
    } else {
      this.ready(transport);
    }
  }

  #makeInbox(encoding: string): Inbox<unknown> {
    const deps: InboxDeps = {
      stream: { pause: () => this.#stream?.pause(), resume: () => this.#stream?.resume() },
      limits: this.#core.limits,
      budget: this.#core.budget,
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
    this.#rawHeaders = raw;
    this.#options.onHeaders?.(Metadata.fromRaw(raw));
    this.#headersKnown?.resolve(Metadata.fromRaw(raw));
  }

  /** Everything is here: the messages, and the status. */
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
    if (this.#outlet !== undefined)
      this.#outlet.fail(error ?? new StatusError(Code.CANCELLED, "the server has answered already"));
    this.#headersKnown?.resolve(Metadata.fromRaw(this.#rawHeaders));
    if (this.#trailersKnown !== undefined || this.#options.onTrailers !== undefined) {
      const trailers = Metadata.fromRaw(this.#rawTrailers);
      this.#options.onTrailers?.(trailers);
      this.#trailersKnown?.resolve(trailers);
    }
    // Requests that nobody will read are not sent; the server has answered.
    if (this.#stream !== undefined && !this.#stream.writableEnded) resetStream(this.#stream);
    this.#settled?.(error);
  }
}
