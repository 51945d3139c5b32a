// One call on the server, from its request headers to its status.
import type { ServerHttp2Stream } from "node:http2";
import type { DescMessage } from "@bufbuild/protobuf";
import { ArrivalRate } from "./arrival-rate.ts";
import type { CallContext, CalledMethod, MaybePromise, Peer } from "./call-context.ts";
import type { Unfolder } from "./gzip.ts";
import type { ServerInterceptor } from "./handler.ts";
import { type Inbox, MessageInbox } from "./inbox.ts";
import { FRAME_COST_BYTES } from "./limits.ts";
import { Metadata } from "./metadata.ts";
import type { ReplyTurns } from "./reply-turns.ts";
import type { RequestHeaders } from "./request-headers.ts";
import { type AnyHandler, isStreaming, type ServedMethod } from "./served-method.ts";
import { type ReplyDeps, ServerReply } from "./server-reply.ts";
import { SingleMessage } from "./single-message.ts";
import { SlicedInbox, SlicedOutlet } from "./sliced.ts";
import type { SlicedField } from "./sliced-field.ts";
import { Code, StatusError } from "./status.ts";
import type { ServerStreamListener } from "./stream-events.ts";

/** What every call of a server shares. */
export interface ServerCallDeps extends ReplyDeps {
  readonly unfolder: Unfolder;
  readonly interceptors: readonly ServerInterceptor[];
  /** Turns what a handler threw into a status, and reports what nobody expected. */
  readonly toStatus: (error: unknown, call: ServerCall) => StatusError;
  /** Called once, when the stream is closed and the handler has returned. */
  readonly onGone: (call: ServerCall) => void;
}

/** The connection that a call is on. */
export interface CallConnection {
  readonly peer: Peer;
  readonly calls: Set<ServerCall>;
  readonly held: { bytes: number };
  readonly flood: { took(bytes: number): void };
  readonly turns: ReplyTurns;
  expectLate(call: ServerCall): void;
}

/** A call in progress. It hears its stream's events, runs the handler, and ends when both have. */
export class ServerCall implements CallContext, ServerStreamListener {
  readonly method: CalledMethod;
  readonly timeoutMs: number | undefined;
  readonly #deps: ServerCallDeps;
  readonly #stream: ServerHttp2Stream;
  readonly #served: ServedMethod;
  readonly #headers: RequestHeaders;
  readonly #connection: CallConnection;
  readonly #reply: ServerReply;
  /** A request stream's messages; undefined where there is one request. */
  readonly #inbox: Inbox<unknown> | undefined;
  readonly #single: SingleMessage | undefined;
  readonly #arrivals: ArrivalRate;
  #metadata: Metadata | undefined;
  #values: Map<symbol, unknown> | undefined;
  #abort: AbortController | undefined;
  #cancelDeadline: (() => void) | undefined;
  /** What the handler of a call with one reply returned. */
  #result: unknown;
  /** What ended the call from outside: the handler's own outcome no longer counts. */
  #cancelled: StatusError | undefined;
  #isRunning = false;
  #hasTurn = false;
  #isClosed = false;
  #inputEnded = false;
  #isInputDropped = false;

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
    this.#arrivals = new ArrivalRate(deps.limits, deps.sweptAtMs);
    this.#reply = new ServerReply(deps, stream, headers, connection.held);
    if (isStreaming(served.called.kind, "requests")) {
      const { limits, budget, unfolder } = deps;
      const inboxDeps = { stream, limits, budget, unfolder, encoding: headers.encoding };
      this.#inbox =
        served.slicedRequests === undefined
          ? new MessageInbox(served.input, inboxDeps)
          : new SlicedInbox(served.input, served.slicedRequests, inboxDeps);
    } else {
      this.#single = new SingleMessage(deps);
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
    return this.#reply.headers;
  }

  get trailers(): Metadata {
    return this.#reply.trailers;
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

  get mayPause(): boolean {
    return this.#inbox !== undefined;
  }

  /** True while the client may still send, and its bytes count against the receive windows. */
  get isReceiving(): boolean {
    return !this.#inputEnded && !this.#isClosed;
  }

  /** Bytes that have come and wait to be taken. */
  get unreadBytes(): number {
    return this.#stream.readableLength;
  }

  sendHeaders(): void {
    this.#reply.sendHeaders();
  }

  /** Starts the deadline and, for request streams, the handler. */
  start(): void {
    if (this.timeoutMs !== undefined) {
      this.#cancelDeadline = this.#deps.clock.after(this.timeoutMs, () =>
        this.cancel(new StatusError(Code.DEADLINE_EXCEEDED, "deadline exceeded")),
      );
    }
    if (this.#inbox !== undefined) this.#run(this.#inbox);
    // A request of no bytes may have ended while it waited for its turn: nothing tells of that again.
    if (this.#stream.readableEnded) this.onEnd();
  }

  /** The stream's next slice. */
  onData(chunk: Buffer): void {
    this.#arrivals.arrived(chunk.length);
    this.#connection.flood.took(chunk.length + FRAME_COST_BYTES);
    if (this.#reply.isFinished) return;
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
    if (this.#reply.isFinished) return;
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
    if (!this.#reply.isFinished) this.cancel(new StatusError(Code.CANCELLED, "the client went away"));
    this.#reply.release();
    if (!this.#isRunning) this.#goneForGood();
  }

  /** The last message is out; the status follows. */
  onWantTrailers(): void {
    this.#reply.sendTrailers();
  }

  /** Ends the call from outside: the handler's signal aborts, and the client is told unless it is gone. */
  cancel(reason: StatusError): void {
    if (this.#reply.isFinished) return;
    this.#cancelled = reason;
    this.#inbox?.fail(reason);
    this.#reply.cancel(reason);
    this.#inputNoLongerMatters();
    this.#abort?.abort(reason);
  }

  /** Looks whether bytes still move; called every second. */
  checkProgress(nowMs: number): void {
    if (this.#reply.isFinished) {
      if (this.#reply.endIfLingering(nowMs)) this.#connection.expectLate(this);
      return;
    }
    if (this.#reply.isStalled()) {
      this.cancel(new StatusError(Code.CANCELLED, "the client does not read"));
      this.#reply.abandon();
      return;
    }
    const owesBytes =
      this.#inbox === undefined ? !this.#inputEnded : this.#inbox.isInsideMessage && !this.#inbox.isPaused;
    if (this.#arrivals.isTooSlow(owesBytes, nowMs)) {
      this.cancel(new StatusError(Code.DEADLINE_EXCEEDED, "the request arrives too slowly"));
    }
  }

  #startSingle(single: SingleMessage): void {
    const request = single.take(this.#served.input, this.#headers.encoding);
    if (request instanceof Promise) {
      request.then(
        (decoded) => {
          if (!this.#reply.isFinished) this.#runInTurn(decoded);
        },
        (error: unknown) => this.#breakOff(error),
      );
    } else {
      this.#runInTurn(request);
    }
  }

  #runInTurn(request: unknown): void {
    if (!this.#served.isBulky) return this.#run(request);
    const { turns } = this.#connection;
    return turns.take(() => {
      if (this.#reply.isFinished || this.#stream.closed || this.#stream.destroyed) return turns.give();
      this.#hasTurn = true;
      return this.#run(request);
    });
  }

  /** A fault of the request itself: a running handler learns of it through its requests and its signal. */
  #breakOff(error: unknown): void {
    this.cancel(this.#deps.toStatus(error, this));
  }

  #run(input: unknown): void {
    this.#isRunning = true;
    const { interceptors } = this.#deps;
    try {
      const outcome = interceptors.length === 0 ? this.#invoke(input) : this.#intercept(0, input);
      if (outcome instanceof Promise) {
        outcome.then(
          () => this.#succeed(),
          (error: unknown) => this.#end(this.#deps.toStatus(error, this)),
        );
      } else {
        this.#succeed();
      }
    } catch (error) {
      this.#end(this.#deps.toStatus(error, this));
    }
  }

  /** Runs the interceptors from one on, then the handler; what fails does so with the status that the call would end in. */
  #intercept(at: number, input: unknown): MaybePromise<void> {
    const interceptor = this.#deps.interceptors[at];
    try {
      const outcome =
        interceptor === undefined
          ? this.#invokeLive(input)
          : interceptor(this, () => this.#intercept(at + 1, input));
      return outcome instanceof Promise ? outcome.catch((error: unknown) => this.#translate(error)) : outcome;
    } catch (error) {
      return this.#translate(error);
    }
  }

  /** A handler may return as if nothing had happened although the call was ended meanwhile. */
  #invokeLive(input: unknown): MaybePromise<void> {
    const outcome = this.#invoke(input);
    if (outcome instanceof Promise) return outcome.then(() => this.#throwIfCancelled());
    return this.#throwIfCancelled();
  }

  #translate(error: unknown): never {
    throw this.#cancelled ?? this.#deps.toStatus(error, this);
  }

  #invoke(input: unknown): MaybePromise<void> {
    const { handler, called, slicedResponses } = this.#served;
    if (handler === undefined) throw new StatusError(Code.UNIMPLEMENTED, `${called.path} is not implemented`);
    if (slicedResponses !== undefined) return this.#writeSliced(handler, input, slicedResponses);
    const result = handler(input, this);
    if (isStreaming(called.kind, "replies")) return this.#writeAll(result as AsyncIterable<unknown>);
    if (result instanceof Promise) {
      return result.then((reply: unknown) => {
        this.#result = reply;
      });
    }
    this.#result = result;
    return undefined;
  }

  async #writeSliced(handler: AnyHandler, input: unknown, field: SlicedField<DescMessage>): Promise<void> {
    const reply = this.#reply;
    const { sendMessageBytes } = this.#deps.limits;
    const writer = new SlicedOutlet(field, reply.outlet, sendMessageBytes, () => reply.sendHeaders());
    await handler(input, this, writer);
    writer.finish();
  }

  async #writeAll(messages: AsyncIterable<unknown>): Promise<void> {
    const reply = this.#reply;
    for await (const message of messages) {
      this.#throwIfCancelled();
      const made = reply.frame(this.#served.output, message);
      const framed = made instanceof Promise ? await made : made;
      this.#throwIfCancelled();
      reply.sendHeaders();
      reply.hold(framed);
      const written = reply.outlet.write(framed);
      if (written !== true) await written;
      reply.release();
    }
  }

  #throwIfCancelled(): void {
    if (this.#cancelled !== undefined) throw this.#cancelled;
  }

  /** The handler is done: sends its one message, if there is one, and OK. */
  #succeed(): void {
    if (this.#reply.isFinished || isStreaming(this.method.kind, "replies")) return this.#end(undefined);
    try {
      const framed = this.#reply.frame(this.#served.output, this.#result);
      if (framed instanceof Promise) {
        framed.then(
          (later) => this.#sendOnly(later),
          (error: unknown) => this.#end(this.#deps.toStatus(error, this)),
        );
      } else {
        this.#sendOnly(framed);
      }
    } catch (error) {
      this.#end(this.#deps.toStatus(error, this));
    }
    return undefined;
  }

  #sendOnly(framed: Buffer): void {
    try {
      if (!this.#isClosed) this.#reply.hold(framed);
    } catch (error) {
      this.#end(this.#deps.toStatus(error, this));
      return;
    }
    this.#end(undefined, framed);
  }

  /** The handler is done: the status goes out unless one did already. */
  #end(error: StatusError | undefined, framed?: Buffer): void {
    this.#reply.finish(error, framed);
    this.#inputNoLongerMatters();
    this.#isRunning = false;
    // Whatever the handler left running on behalf of this call has nothing to do any more.
    this.#abort?.abort(this.#cancelled ?? new StatusError(Code.CANCELLED, "the call has ended"));
    if (this.#isClosed) this.#goneForGood();
  }

  /** The stream is closed and the handler has returned. Not before is the turn given on: to who reads nothing, or gives up, it would come for nothing. */
  #goneForGood(): void {
    if (this.#hasTurn) this.#connection.turns.give();
    this.#deps.onGone(this);
  }

  /** Stops the clock, and drops what the client still sends: a reset right behind the status would reach it as an error. */
  #inputNoLongerMatters(): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
    this.#single?.release();
    if (this.#inputEnded || this.#isInputDropped) return;
    this.#isInputDropped = true;
    this.#connection.expectLate(this);
    if (!this.#stream.destroyed) this.#stream.resume();
  }
}
