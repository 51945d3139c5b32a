// One call on the server, from its request headers to its status.
import type { ServerHttp2Stream } from "node:http2";
import type { Slots } from "#base/slots.ts";
import type { Decompressor } from "#wire/framing/gzip.ts";
import { type Inbox, MessageInbox } from "#wire/framing/inbox.ts";
import { BULKY_REPLY_MIN_BYTES } from "#wire/framing/limits.ts";
import type { Metadata } from "#wire/framing/metadata.ts";
import type { RequestHeaders } from "#wire/framing/request-headers.ts";
import { PartyBytes, type SharedBudget } from "#wire/framing/shared-budget.ts";
import { SingleMessage } from "#wire/framing/single-message.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { ServerStreamListener } from "#wire/framing/stream-events.ts";
import { roomFor } from "#wire/framing/unfolded-room.ts";
import { ArrivalRate, type Arrivals } from "./arrival-rate.ts";
import type { CallContext, CalledMethod, Peer } from "./call-context.ts";
import type { PlacedCall, Places } from "./call-places.ts";
import { HandlerRun, type HandlerRunDeps } from "./handler-run.ts";
import { type ReplyScheduler, ReplyTurn } from "./reply-scheduler.ts";
import { isStreaming, type ServedMethod } from "./served-method.ts";
import { type ReplyConnection, type ReplyDeps, ServerReply } from "./server-reply.ts";
import { SlicedInbox } from "./sliced.ts";
import type { Standing } from "./standing.ts";

/** Shared by all calls of a server. */
export interface ServerCallDeps extends ReplyDeps, HandlerRunDeps {
  readonly unfolder: Decompressor;
  readonly places: Places;
  readonly requestBytes: SharedBudget;
  readonly unfoldedBytes: SharedBudget;
  readonly replyBytes: SharedBudget;
  /** Called once, when the stream is closed and the handler has returned. */
  readonly onGone: (call: ServerCall) => void;
}

/** The connection that a call is on. */
export interface CallConnection extends Arrivals, ReplyConnection {
  readonly peer: Peer;
  readonly calls: Slots<ServerCall>;
  /** Counts the payload of a DATA frame that a call took. */
  arrived(bytes: number): void;
  readonly turns: ReplyScheduler;
  expectLate(call: ServerCall): void;
  /** Counts a refused call by the bytes of its headers. */
  refused(headersBytes: number): void;
}

/** A request that becomes a call. */
export interface CallRequest {
  readonly stream: ServerHttp2Stream;
  readonly served: ServedMethod;
  readonly headers: RequestHeaders;
  readonly metadata: Metadata;
  readonly connection: CallConnection;
  readonly standing: Standing;
}

/** A call in progress. It hears its stream's events, runs the handler, and ends when both have. */
export class ServerCall implements CallContext, ServerStreamListener, PlacedCall {
  readonly method: CalledMethod;
  readonly metadata: Metadata;
  readonly standing: Standing;
  readonly timeoutMs: number | undefined;
  /** Its place among the connection's calls. */
  place = 0;
  readonly #deps: ServerCallDeps;
  readonly #stream: ServerHttp2Stream;
  readonly #served: ServedMethod;
  readonly #encoding: string;
  readonly #connection: CallConnection;
  readonly #reply: ServerReply;
  /** A request stream's messages; undefined for a single request. */
  readonly #inbox: Inbox<unknown> | undefined;
  readonly #single: SingleMessage | undefined;
  readonly #arrivals: ArrivalRate;
  readonly #handlerRun: HandlerRun;
  #arrivingMs = 0;
  #lookedAtMs: number;
  #hasBegun = false;
  #values: Map<symbol, unknown> | undefined;
  #abort: AbortController | undefined;
  #cancelDeadline: (() => void) | undefined;
  /** The reason of a cancellation from outside: the handler's own outcome then no longer counts. */
  #cancelled: StatusError | undefined;
  #isRunning = false;
  /** The turn of a large reply, until the client has taken it. */
  #turn: ReplyTurn | undefined;
  #isClosed = false;
  #wasGivenUp = false;
  #inputEnded = false;
  #isInputDropped = false;

  constructor(deps: ServerCallDeps, request: CallRequest) {
    const { stream, served, headers, connection, standing } = request;
    this.#deps = deps;
    this.#stream = stream;
    this.#served = served;
    this.#encoding = headers.encoding;
    this.#connection = connection;
    this.method = served.called;
    this.metadata = request.metadata;
    this.standing = standing;
    this.timeoutMs = headers.timeoutMs;
    this.#arrivals = new ArrivalRate(deps.limits, connection, deps.sweptAtMs);
    this.#lookedAtMs = deps.sweptAtMs;
    const { requestBytes, replyBytes, unfoldedBytes, unfolder } = deps;
    const { party } = standing;
    this.#reply = new ServerReply(deps, stream, headers, connection, new PartyBytes(replyBytes, party));
    this.#handlerRun = new HandlerRun(deps, this, served, this.#reply);
    const room = roomFor(headers.encoding, new PartyBytes(unfoldedBytes, party));
    const messages = { limits: served.limits, budget: new PartyBytes(requestBytes, party), unfolder, room };
    if (isStreaming(served.called.kind, "requests")) {
      const inboxDeps = { ...messages, stream, encoding: headers.encoding };
      this.#inbox =
        served.slicedRequests === undefined
          ? new MessageInbox(served.input, inboxDeps)
          : new SlicedInbox(served.input, served.slicedRequests, inboxDeps);
    } else {
      this.#single = new SingleMessage(messages, {
        pause: () => this.#pause(),
        resume: () => stream.resume(),
      });
    }
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

  /** The reason of a cancellation from outside. */
  get cancelled(): StatusError | undefined {
    return this.#cancelled;
  }

  /** True when the client ended it before its answer. */
  get wasGivenUp(): boolean {
    return this.#wasGivenUp;
  }

  /** Bytes that have arrived and wait for the handler. */
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
    if (this.#inbox !== undefined) this.#begin(() => this.#run(this.#inbox));
    // An empty request may have ended while it waited for its turn, and no later event reports that.
    if (this.#stream.readableEnded) this.onEnd();
  }

  /** Takes the stream's next slice. */
  onData(chunk: Buffer): void {
    this.#connection.arrived(chunk.length);
    if (this.#inbox !== undefined) this.#arrivingMs = 0;
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
      else this.#begin(() => this.#takeSingle(this.#single as SingleMessage));
    } catch (error) {
      this.#breakOff(error);
    }
  }

  /** Takes the call's place and keeps it. */
  #begin(run: () => void): void {
    try {
      this.#deps.places.begin(this);
    } catch (error) {
      return this.cancel(error as StatusError);
    }
    this.#hasBegun = true;
    return run();
  }

  /** Pauses the client for lack of room. A paused stream may be aborted long before it closes. */
  #pause(): void {
    this.#stream.pause();
    this.#stream.once("aborted", () => this.onClose());
  }

  /** The stream has closed, with or without an error. */
  onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#connection.calls.remove(this.place);
    if (!this.#reply.isFinished) {
      this.#wasGivenUp = true;
      this.cancel(new StatusError(Code.CANCELLED, "the client went away"));
    }
    this.#reply.release();
    if (!this.#isRunning) this.#goneForGood();
  }

  /** The last message is sent; the status follows. */
  onWantTrailers(): void {
    this.#reply.sendTrailers();
  }

  /** Ends the call from outside: the handler's signal aborts, and a connected client gets the status. */
  cancel(reason: StatusError): void {
    if (this.#reply.isFinished) return;
    this.#cancelled = reason;
    this.#deps.places.cancelled?.(this, reason);
    this.#countRefusal(reason);
    this.#inbox?.fail(reason);
    this.#reply.cancel(reason);
    this.#inputNoLongerMatters();
    this.#abort?.abort(reason);
  }

  /** Checks that bytes still move; called every second. */
  checkProgress(nowMs: number): void {
    if (this.#reply.isFinished) {
      if (this.#reply.endIfLingering(nowMs)) this.#connection.expectLate(this);
      return;
    }
    if (this.#reply.isStalled(nowMs)) {
      this.cancel(new StatusError(Code.CANCELLED, "the client does not read"));
      this.#reply.abandon();
      return;
    }
    const owesBytes =
      this.#inbox === undefined
        ? !this.#inputEnded && this.#single?.isWaiting !== true
        : this.#inbox.isInsideMessage && !this.#inbox.isPaused;
    const isOverdue = this.#isOverdue(owesBytes, nowMs);
    if (isOverdue || this.#arrivals.isTooSlow(owesBytes, nowMs)) {
      const how = isOverdue ? "has not arrived in time" : "arrives too slowly";
      this.cancel(new StatusError(Code.DEADLINE_EXCEEDED, `the request ${how}`));
    }
  }

  /** Whether a single request, or a stream's silence inside a message, lasts too long without want of room. */
  #isOverdue(owesBytes: boolean, nowMs: number): boolean {
    const { requestMs, unprovenRequestMs } = this.#deps.limits;
    if (owesBytes) this.#arrivingMs += nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    return this.#arrivingMs > (this.standing.kind === "unproven" ? unprovenRequestMs : requestMs);
  }

  #takeSingle(single: SingleMessage): void {
    const request = single.take(this.#served.input, this.#encoding, this.#served.decode);
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
    const turn = new ReplyTurn(this.#connection.turns);
    this.#turn = turn;
    const isOver = (): boolean => this.#reply.isFinished || this.#stream.closed || this.#stream.destroyed;
    return turn.take(() => (isOver() ? turn.give() : this.#run(request)));
  }

  /** Handles a fault of the request itself: a running handler gets it through its requests and its signal. */
  #breakOff(error: unknown): void {
    this.cancel(this.#deps.toStatus(error, this));
  }

  #run(input: unknown): void {
    this.#isRunning = true;
    try {
      const outcome = this.#handlerRun.start(input);
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

  /** Handles success: sends the one message, if there is one, and OK. */
  #succeed(): void {
    if (this.#reply.isFinished || isStreaming(this.method.kind, "replies")) return this.#end(undefined);
    try {
      const framed = this.#reply.frame(this.#served.output, this.#handlerRun.result);
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
      return this.#end(this.#deps.toStatus(error, this));
    }
    return this.#end(undefined, framed);
  }

  /** Handles the handler's end: sends the status unless it is already sent. */
  #end(error: StatusError | undefined, framed?: Buffer): void {
    this.#countRefusal(error);
    if ((framed?.length ?? 0) < BULKY_REPLY_MIN_BYTES) this.#turn?.give();
    this.#reply.finish(error, framed);
    this.#isRunning = false;
    this.#inputNoLongerMatters();
    // Work that the handler left running for this call must stop.
    this.#abort?.abort(this.#cancelled ?? new StatusError(Code.CANCELLED, "the call has ended"));
    if (this.#isClosed) this.#goneForGood();
  }

  #countRefusal(error: StatusError | undefined): void {
    if (error !== undefined && !this.#reply.isFinished && !this.#wasGivenUp) this.#connection.refused(0);
  }

  /** Passes the turn on once the stream is closed and the handler has returned: no idle client gets it. */
  #goneForGood(): void {
    this.#turn?.give();
    this.#deps.places.leave(this, this.#hasBegun);
    this.#deps.onGone(this);
  }

  /** Stops the deadline and drops further input: a reset after the status would be an error to the client. */
  #inputNoLongerMatters(): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
    // A handler that still runs keeps its request.
    if (!this.#isRunning) (this.#single ?? this.#inbox)?.release();
    if (this.#inputEnded || this.#isInputDropped) return;
    this.#isInputDropped = true;
    this.#connection.expectLate(this);
    if (!this.#stream.destroyed) this.#stream.resume();
  }
}
