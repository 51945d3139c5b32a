// One call on the server, from its request headers to its status.
import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { Clock } from "#base/clock.ts";
import type { CallContext, CalledMethod, MaybePromise, Peer } from "./call-context.ts";
import { compress, frame, type MessageBudget } from "./frames.ts";
import type { ServerInterceptor } from "./handler.ts";
import { type Inbox, type InboxDeps, MessageInbox } from "./inbox.ts";
import { LINGER_MS, SEND_WINDOW_BYTES, type ServerLimits, SMALL_MESSAGE_BYTES } from "./limits.ts";
import { Metadata } from "./metadata.ts";
import { Outlet } from "./outlet.ts";
import type { RequestHeaders } from "./request-headers.ts";
import { resetStream } from "./reset.ts";
import { SingleMessage } from "./single-message.ts";
import { SlicedInbox, SlicedOutlet } from "./sliced.ts";
import type { SlicedField } from "./sliced-field.ts";
import { Code, StatusError, statusHeaders } from "./status.ts";

/** A handler of any kind, with its types forgotten. */
export type AnyHandler = (input: unknown, context: CallContext, writer?: unknown) => unknown;

/** A method as the server keeps it. */
export interface ServedMethod {
  readonly called: CalledMethod;
  readonly input: DescMessage;
  readonly output: DescMessage;
  /** Undefined when the service has not implemented it. */
  readonly handler: AnyHandler | undefined;
  readonly slicedRequests: SlicedField<DescMessage> | undefined;
  readonly slicedResponses: SlicedField<DescMessage> | undefined;
}

/** What every call of a server shares. */
export interface ServerCallDeps {
  readonly limits: ServerLimits;
  readonly clock: Clock;
  readonly budget: MessageBudget;
  readonly interceptors: readonly ServerInterceptor[];
  /** Turns what a handler threw into a status, and reports what nobody expected. */
  readonly toStatus: (error: unknown, call: ServerCall) => StatusError;
  /** Called once, when the stream is closed and the handler has returned. */
  readonly onGone: (call: ServerCall) => void;
  /** Steady time of the last sweep, near enough for what is counted in seconds. */
  sweptAtMs: number;
}

/** The connection that a call is on. */
export interface CallConnection {
  readonly peer: Peer;
  readonly calls: Set<ServerCall>;
}

const OK_HEADERS: readonly string[] = [":status", "200", "content-type", "application/grpc"];
const OK_TRAILERS: OutgoingHttpHeaders = { "grpc-status": "0" };
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false };
const TRAILERS_ONLY = { endStream: true, sendDate: false };
/** Replies below this size are not worth compressing. */
const COMPRESS_MIN_BYTES = 256;

const toObject = (raw: readonly string[]): OutgoingHttpHeaders => {
  const headers: Record<string, string | string[]> = {};
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string;
    const value = raw[i + 1] as string;
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (typeof before === "string") headers[name] = [before, value];
    else before.push(value);
  }
  return headers;
};

/** A call in progress. The server feeds it from its stream's events. */
export class ServerCall implements CallContext {
  readonly method: CalledMethod;
  readonly timeoutMs: number | undefined;
  readonly #deps: ServerCallDeps;
  readonly #stream: ServerHttp2Stream;
  readonly #served: ServedMethod;
  readonly #headers: RequestHeaders;
  readonly #connection: CallConnection;
  readonly #inbox: Inbox<unknown> | undefined;
  readonly #single: SingleMessage | undefined;
  #outlet: Outlet | undefined;
  #metadata: Metadata | undefined;
  #responseHeaders: Metadata | undefined;
  #trailers: Metadata | undefined;
  #values: Map<symbol, unknown> | undefined;
  #abort: AbortController | undefined;
  #cancelDeadline: (() => void) | undefined;
  #reply: unknown;
  #heldReplyBytes = 0;
  #trailersToSend: OutgoingHttpHeaders = OK_TRAILERS;
  /** What ended the call from outside: the handler's own outcome no longer counts. */
  #cancelled: StatusError | undefined;
  #isRunning = false;
  #isFinished = false;
  #isClosed = false;
  #inputEnded = false;
  #receivedBytes = 0;
  #checkedBytes = 0;
  #checkedAtMs: number;
  #finishedAtMs = 0;

  constructor(
    deps: ServerCallDeps,
    stream: ServerHttp2Stream,
    served: ServedMethod,
    headers: RequestHeaders,
    connection: CallConnection,
  ) {
    this.#deps = deps;
    this.#stream = stream;
    this.#served = served;
    this.#headers = headers;
    this.#connection = connection;
    connection.calls.add(this);
    this.method = served.called;
    this.timeoutMs = headers.timeoutMs;
    this.#checkedAtMs = deps.sweptAtMs;
    const { kind } = served.called;
    if (kind === "client_streaming" || kind === "bidi_streaming") {
      const inboxDeps: InboxDeps = {
        stream,
        limits: deps.limits,
        budget: deps.budget,
        encoding: headers.encoding,
      };
      this.#inbox =
        served.slicedRequests === undefined
          ? new MessageInbox(served.input, inboxDeps)
          : new SlicedInbox(served.input, served.slicedRequests, inboxDeps);
    } else {
      this.#single = new SingleMessage(deps.limits, deps.budget);
    }
  }

  get metadata(): Metadata {
    this.#metadata ??= Metadata.fromRaw(this.#headers.raw);
    return this.#metadata;
  }

  get peer(): Peer {
    return this.#connection.peer;
  }

  get responseHeaders(): Metadata {
    this.#responseHeaders ??= new Metadata();
    return this.#responseHeaders;
  }

  get trailers(): Metadata {
    this.#trailers ??= new Metadata();
    return this.#trailers;
  }

  get values(): Map<symbol, unknown> {
    this.#values ??= new Map();
    return this.#values;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#cancelled !== undefined) this.#abort.abort(this.#cancelled);
    }
    return this.#abort.signal;
  }

  /** True when the stream may be paused for the handler's sake. */
  get mayPause(): boolean {
    return this.#inbox !== undefined;
  }

  /** True while the client may still send, and its bytes count against the receive windows. */
  get isReceiving(): boolean {
    return !this.#inputEnded && !this.#isClosed;
  }

  /** Starts the deadline and, for request streams, the handler. */
  start(): void {
    if (this.timeoutMs !== undefined) {
      this.#cancelDeadline = this.#deps.clock.after(this.timeoutMs, () =>
        this.cancel(new StatusError(Code.DEADLINE_EXCEEDED, "deadline exceeded")),
      );
    }
    if (this.#inbox !== undefined) this.#run(this.#inbox);
  }

  /** The stream's next slice. */
  onData(chunk: Buffer): void {
    this.#receivedBytes += chunk.length;
    if (this.#isFinished) return;
    try {
      if (this.#inbox !== undefined) this.#inbox.push(chunk);
      else this.#single?.push(chunk);
    } catch (error) {
      this.#breakOff(error);
    }
  }

  /** The client has sent everything. */
  onEnd(): void {
    this.#inputEnded = true;
    if (this.#isFinished) return;
    try {
      if (this.#inbox !== undefined) this.#inbox.end();
      else if (this.#single !== undefined) this.#startSingle(this.#single);
    } catch (error) {
      this.#breakOff(error);
    }
  }

  /** The stream is gone, well or not. */
  onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#connection.calls.delete(this);
    this.#deps.budget.give(this.#heldReplyBytes);
    this.#heldReplyBytes = 0;
    if (!this.#isFinished) this.cancel(new StatusError(Code.CANCELLED, "the client went away"));
    this.#release();
    if (!this.#isRunning) this.#deps.onGone(this);
  }

  /** The last message is out; the status follows. */
  onWantTrailers(): void {
    if (!this.#stream.destroyed && !this.#stream.closed) this.#stream.sendTrailers(this.#trailersToSend);
  }

  /** Ends the call from outside: the handler's signal aborts, and the client is told unless it is gone. */
  cancel(reason: StatusError): void {
    if (this.#isFinished) return;
    this.#cancelled ??= reason;
    this.#inbox?.fail(reason);
    this.#outlet?.fail(reason);
    this.#finish(reason);
    this.#abort?.abort(reason);
  }

  /** Looks whether bytes still move; called every second. */
  checkProgress(nowMs: number): void {
    const { limits } = this.#deps;
    if (this.#isFinished) {
      // A reply that still moves may take its time; one that does not is given up, and so is a client that only sends.
      const done = this.#stream.writableFinished;
      const idleMs = this.#outlet?.isWaiting === true ? this.#outlet.stalledMs : nowMs - this.#finishedAtMs;
      if (idleMs > (done ? LINGER_MS : limits.sendStallMs)) this.#reset(done);
      return;
    }
    if ((this.#outlet?.stalledMs ?? 0) > limits.sendStallMs) {
      this.cancel(new StatusError(Code.CANCELLED, "the client does not read"));
      this.#reset(false);
      return;
    }
    const owesBytes =
      this.#inbox === undefined ? !this.#inputEnded : this.#inbox.isInsideMessage && !this.#inbox.isPaused;
    if (!owesBytes) {
      this.#checkedAtMs = nowMs;
      this.#checkedBytes = this.#receivedBytes;
    } else if (nowMs - this.#checkedAtMs >= limits.progressWindowMs) {
      const dueBytes = ((nowMs - this.#checkedAtMs) / 1_000) * limits.minimumBytesPerSecond;
      if (this.#receivedBytes - this.#checkedBytes < dueBytes) {
        this.cancel(new StatusError(Code.DEADLINE_EXCEEDED, "the request arrives too slowly"));
      }
      this.#checkedAtMs = nowMs;
      this.#checkedBytes = this.#receivedBytes;
    }
  }

  /** Ends the stream by force: a close alone would wait until the client takes what lies before it. */
  #reset(isDone: boolean): void {
    if (!isDone) return resetStream(this.#stream);
    this.#stream.close(constants.NGHTTP2_NO_ERROR);
    this.#stream.destroy();
    return undefined;
  }

  #startSingle(single: SingleMessage): void {
    const request = single.take(this.#served.input, this.#headers.encoding);
    if (request instanceof Promise) {
      request.then(
        (decoded) => {
          if (!this.#isFinished) this.#run(decoded);
        },
        (error: unknown) => this.#breakOff(error),
      );
    } else {
      this.#run(request);
    }
  }

  /** A fault of the request itself: a running handler learns of it through its requests and its signal. */
  #breakOff(error: unknown): void {
    this.cancel(error instanceof StatusError ? error : this.#deps.toStatus(error, this));
  }

  #run(input: unknown): void {
    this.#isRunning = true;
    const { interceptors } = this.#deps;
    try {
      const outcome =
        interceptors.length === 0
          ? this.#invoke(input)
          : this.#intercept(interceptors, 0, () => this.#invoke(input));
      if (outcome instanceof Promise) {
        outcome.then(
          () => this.#succeed(),
          (error: unknown) => this.#failWith(error),
        );
      } else {
        this.#succeed();
      }
    } catch (error) {
      this.#failWith(error);
    }
  }

  #intercept(
    interceptors: readonly ServerInterceptor[],
    at: number,
    innermost: () => MaybePromise<void>,
  ): MaybePromise<void> {
    const interceptor = interceptors[at];
    if (interceptor === undefined) {
      // A handler may return as if nothing had happened although the call was ended meanwhile.
      return this.#translated(() => {
        const outcome = innermost();
        if (outcome instanceof Promise) return outcome.then(() => this.#throwIfCancelled());
        return this.#throwIfCancelled();
      });
    }
    return this.#translated(() => interceptor(this, () => this.#intercept(interceptors, at + 1, innermost)));
  }

  /** Runs something so that it fails with the status that the call would end in. */
  #translated(run: () => MaybePromise<void>): MaybePromise<void> {
    const translate = (error: unknown): never => {
      throw this.#cancelled ?? this.#deps.toStatus(error, this);
    };
    try {
      const outcome = run();
      return outcome instanceof Promise ? outcome.catch(translate) : outcome;
    } catch (error) {
      return translate(error);
    }
  }

  #invoke(input: unknown): MaybePromise<void> {
    const { handler, called, slicedResponses } = this.#served;
    if (handler === undefined) throw new StatusError(Code.UNIMPLEMENTED, `${called.path} is not implemented`);
    if (slicedResponses !== undefined) return this.#writeSliced(handler, input, slicedResponses);
    const result = handler(input, this);
    if (called.kind === "server_streaming" || called.kind === "bidi_streaming") {
      return this.#writeAll(result as AsyncIterable<unknown>);
    }
    if (result instanceof Promise) {
      return result.then((reply: unknown) => {
        this.#reply = reply;
      });
    }
    this.#reply = result;
    return undefined;
  }

  async #writeSliced(handler: AnyHandler, input: unknown, field: SlicedField<DescMessage>): Promise<void> {
    const writer = new SlicedOutlet(field, this.#openOutlet(), this.#deps.limits.sendMessageBytes, () =>
      this.sendHeaders(),
    );
    await handler(input, this, writer);
    writer.finish();
  }

  async #writeAll(replies: AsyncIterable<unknown>): Promise<void> {
    const outlet = this.#openOutlet();
    for await (const reply of replies) {
      this.#throwIfCancelled();
      const body = this.#encode(reply);
      const framed = this.#compresses(body) ? frame(await compress(body), true) : frame(body, false);
      this.#throwIfCancelled();
      this.sendHeaders();
      const written = outlet.write(framed);
      if (written !== true) await written;
    }
  }

  #throwIfCancelled(): void {
    if (this.#cancelled !== undefined) throw this.#cancelled;
  }

  #openOutlet(): Outlet {
    this.#outlet ??= new Outlet(this.#stream, this.#deps.clock);
    if (this.#cancelled !== undefined) this.#outlet.fail(this.#cancelled);
    return this.#outlet;
  }

  #encode(reply: unknown): Uint8Array {
    const { output } = this.#served;
    const message: MessageShape<DescMessage> = create(output, reply as MessageInitShape<DescMessage>);
    const body = toBinary(output, message);
    if (body.length > this.#deps.limits.sendMessageBytes) {
      throw new StatusError(
        Code.RESOURCE_EXHAUSTED,
        `reply of ${body.length} bytes is larger than the limit of ${this.#deps.limits.sendMessageBytes}`,
      );
    }
    return body;
  }

  /** A reply is compressed when the request came with gzip and the reply gains from it. */
  #compresses(body: Uint8Array): boolean {
    return (
      this.#headers.encoding === "gzip" && this.#headers.acceptsGzip && body.length >= COMPRESS_MIN_BYTES
    );
  }

  #succeed(): void {
    if (this.#isFinished) return this.#handlerDone();
    const { kind } = this.method;
    if (kind === "server_streaming" || kind === "bidi_streaming") {
      this.#finish(undefined);
      return this.#handlerDone();
    }
    try {
      const body = this.#encode(this.#reply);
      if (this.#compresses(body)) {
        void compress(body).then((compressed) => this.#sendReply(frame(compressed, true)));
        return undefined;
      }
      this.#sendReply(frame(body, false));
    } catch (error) {
      this.#failWith(error);
    }
    return undefined;
  }

  #sendReply(framed: Buffer): void {
    if (!this.#isFinished && !this.#stream.destroyed) {
      if (framed.length > SMALL_MESSAGE_BYTES) {
        try {
          this.#deps.budget.take(framed.length);
          this.#heldReplyBytes = framed.length;
        } catch (error) {
          this.#failWith(error);
          return;
        }
      }
      this.#finish(undefined, framed);
    }
    this.#handlerDone();
  }

  #failWith(error: unknown): void {
    if (!this.#isFinished) this.#finish(this.#deps.toStatus(error, this));
    this.#handlerDone();
  }

  #handlerDone(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    // Whatever the handler left running on behalf of this call has nothing to do any more.
    this.#abort?.abort(this.#cancelled ?? new StatusError(Code.CANCELLED, "the call has ended"));
    if (this.#isClosed) this.#deps.onGone(this);
  }

  sendHeaders(): void {
    if (this.#stream.headersSent || this.#stream.destroyed || this.#stream.closed) return;
    const usesGzip = this.#headers.encoding === "gzip" && this.#headers.acceptsGzip;
    let headers = OK_HEADERS;
    if (usesGzip || this.#responseHeaders !== undefined) {
      const list = OK_HEADERS.slice();
      if (usesGzip) list.push("grpc-encoding", "gzip");
      this.#responseHeaders?.appendTo(list);
      headers = list;
    }
    this.#stream.respond(headers, WITH_TRAILERS);
  }

  /** Sends what is left to send: the reply if there is one, and the status, undefined for OK. */
  #finish(error: StatusError | undefined, framed?: Buffer): void {
    this.#isFinished = true;
    this.#finishedAtMs = this.#deps.sweptAtMs;
    this.#release();
    if (this.#stream.destroyed || this.#stream.closed) return;
    // Headers of the handler's own keep their place before the status, so then the reply is not one block.
    if (error !== undefined && !this.#stream.headersSent && this.#responseHeaders === undefined) {
      const headers = [":status", "200", "content-type", "application/grpc"];
      headers.push(...statusHeaders(error));
      this.#trailers?.appendTo(headers);
      this.#stream.respond(headers, TRAILERS_ONLY);
    } else {
      if (error !== undefined || this.#trailers !== undefined) {
        const raw = error === undefined ? ["grpc-status", "0"] : statusHeaders(error);
        this.#trailers?.appendTo(raw);
        this.#trailersToSend = toObject(raw);
      }
      this.sendHeaders();
      this.#endStream(framed);
    }
    // What the client still sends is dropped: a reset right behind the trailers would reach it as an error.
    if (!this.#inputEnded) this.#stream.resume();
  }

  #endStream(framed: Buffer | undefined): void {
    if (framed === undefined) this.#stream.end();
    else if (framed.length <= SEND_WINDOW_BYTES) this.#stream.end(framed);
    else {
      const written = this.#openOutlet().write(framed);
      void Promise.resolve(written).then(
        () => this.#stream.end(),
        () => resetStream(this.#stream),
      );
    }
  }

  #release(): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
    this.#single?.release();
  }
}
