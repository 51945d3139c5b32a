// The deciding half of a call: its place, interceptors, handler and answer. A loop has its stream.
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { EncodedReply } from "#wire/framing/encoded-reply.ts";
import { frame } from "#wire/framing/frames.ts";
import { BULKY_REPLY_MIN_BYTES, SMALL_MESSAGE_BYTES } from "#wire/framing/limits.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { PartyBytes, type SharedBudget } from "#wire/framing/shared-budget.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { CallContext, CalledMethod, CallLink, Peer } from "#wire/grpc/call-context.ts";
import type { PlacedCall, Places } from "#wire/grpc/call-places.ts";
import { HandlerRun, type HandlerRunDeps, type RunReply } from "#wire/grpc/handler-run.ts";
import { type ReplyScheduler, ReplyTurn } from "#wire/grpc/reply-scheduler.ts";
import { isStreaming, type ServedMethod } from "#wire/grpc/served-method.ts";
import type { Standing } from "#wire/grpc/standing.ts";
import { type BatchedPort, bytesToCross, type CrossingBytes, crossedBytes } from "./batched-port.ts";
import type { ToLoop } from "./loop-messages.ts";
import { flatOf, packStatus } from "./packed-status.ts";
import { decode, RemoteSource } from "./remote-source.ts";

/** Shared by all calls. */
export interface RemoteCallDeps extends HandlerRunDeps {
  readonly places: Places;
  readonly replyBytes: SharedBudget;
}

/** A judged request. */
export interface RemoteRequest {
  /** Number of the call in its loop. */
  readonly id: number;
  readonly port: BatchedPort<ToLoop>;
  readonly served: ServedMethod;
  readonly metadata: Metadata;
  readonly peer: Peer;
  readonly standing: Standing;
  readonly timeoutMs: number | undefined;
  /** Turns of the large replies of its connection. */
  readonly turns: ReplyScheduler;
}

/** One call. It leaves its place when its handler has returned and the loop has closed its stream. */
export class RemoteCall implements CallContext, PlacedCall, CallLink {
  readonly method: CalledMethod;
  readonly metadata: Metadata;
  readonly peer: Peer;
  readonly standing: Standing;
  readonly timeoutMs: number | undefined;
  readonly responseHeaders: Metadata = new Metadata();
  readonly trailers: Metadata = new Metadata();
  readonly link: CallLink = this;
  onTold: ((message: unknown) => void) | undefined;
  onLost: (() => void) | undefined;
  readonly #deps: RemoteCallDeps;
  readonly #id: number;
  readonly #port: BatchedPort<ToLoop>;
  readonly #served: ServedMethod;
  readonly #run: HandlerRun;
  readonly #replyBytes: PartyBytes;
  readonly #source: RemoteSource | undefined;
  /** The turn of a large reply, until the loop's half has ended. */
  readonly #turn: ReplyTurn | undefined;
  #values: Map<symbol, unknown> | undefined;
  #abort: AbortController | undefined;
  #cancelled: StatusError | undefined;
  #hasBegun = false;
  #isRunning = false;
  #isOver = false;
  #isGone = false;
  #sentHeaders = false;
  #heldBytes = 0;

  constructor(
    deps: RemoteCallDeps,
    { id, port, served, metadata, peer, standing, timeoutMs, turns }: RemoteRequest,
  ) {
    this.#deps = deps;
    this.#id = id;
    this.#port = port;
    this.#served = served;
    this.method = served.called;
    this.metadata = metadata;
    this.peer = peer;
    this.standing = standing;
    this.timeoutMs = timeoutMs;
    if (served.isBulky) this.#turn = new ReplyTurn(turns);
    this.#replyBytes = new PartyBytes(deps.replyBytes, standing.party);
    this.#run = new HandlerRun(deps, this, served, this.#reply());
    if (isStreaming(served.called.kind, "requests")) {
      this.#source = new RemoteSource(served, (count) => port.post({ op: "pull", call: id, count }));
    }
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

  get cancelled(): StatusError | undefined {
    return this.#cancelled;
  }

  sendHeaders(): void {
    if (this.#sentHeaders) return;
    this.#sentHeaders = true;
    this.#port.post({ op: "headers", call: this.#id, headers: flatOf(this.responseHeaders) });
  }

  tell(message: unknown, transfer?: readonly ArrayBuffer[]): void {
    this.#port.post({ op: "tell", call: this.#id, message }, transfer);
  }

  flow(): void {
    this.#source?.flow();
  }

  /** Starts the handler of a request stream; others wait for their request. */
  start(): void {
    // A method without a handler here is answered in the loop, as health is.
    if (this.#source === undefined || this.#served.handler === undefined) return;
    this.#begin(() => this.#invoke(this.#source));
  }

  /** The one request of the call. */
  request(body: CrossingBytes): void {
    if (this.#hasBegun || this.#isOver) return;
    // It gave way to another while its request was on its way: its client is told so already.
    if (this.#cancelled !== undefined) return this.#end(undefined);
    this.#begin(() => {
      let input: unknown;
      try {
        input = decode(this.#served, crossedBytes(body));
      } catch (error) {
        return this.#end(this.#deps.toStatus(error, this));
      }
      return this.#invokeInTurn(input);
    });
  }

  /** The next message of a request stream. */
  message(body: CrossingBytes, payloadBytes: number): void {
    try {
      this.#source?.arrived(crossedBytes(body), payloadBytes);
    } catch (error) {
      this.#source?.fail(this.#deps.toStatus(error, this));
    }
  }

  /** The client has sent everything. */
  endOfMessages(): void {
    this.#source?.end();
  }

  /** The request stream is broken: its consumer gets the status. */
  brokenOff(status: StatusError): void {
    this.#source?.fail(status);
  }

  told(message: unknown): void {
    this.onTold?.(message);
  }

  /** Ends the call in favour of another one. */
  cancel(reason: StatusError): void {
    this.#port.post({ op: "cancel", call: this.#id, status: packStatus(reason) });
    this.endedThere(reason);
  }

  /** The call has ended at the loop: the handler's outcome no longer counts. */
  endedThere(reason: StatusError): void {
    if (this.#isOver || this.#cancelled !== undefined) return;
    this.#cancelled = reason;
    this.#source?.fail(reason);
    this.#abort?.abort(reason);
  }

  /** The loop's half has ended, or its thread. */
  gone(): void {
    if (this.#isGone) return;
    this.endedThere(new StatusError(Code.CANCELLED, "the client went away"));
    this.#isGone = true;
    this.#replyBytes.give(this.#heldBytes);
    this.#heldBytes = 0;
    const { onLost } = this;
    this.onLost = undefined;
    onLost?.();
    if (!this.#isRunning) this.#leave();
  }

  #begin(run: () => void): void {
    try {
      this.#deps.places.begin(this);
    } catch (error) {
      this.#end(error as StatusError);
      return;
    }
    this.#hasBegun = true;
    run();
  }

  #invokeInTurn(input: unknown): void {
    if (this.#turn === undefined) return this.#invoke(input);
    this.#isRunning = true;
    return this.#turn.take(() =>
      this.#cancelled === undefined ? this.#invoke(input) : this.#end(undefined),
    );
  }

  #invoke(input: unknown): void {
    this.#isRunning = true;
    try {
      const outcome = this.#run.start(input);
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

  #succeed(): void {
    if (this.#cancelled !== undefined || isStreaming(this.method.kind, "replies"))
      return this.#end(undefined);
    try {
      const encoded = this.#encode(this.#run.result);
      if (encoded.length > SMALL_MESSAGE_BYTES && !this.#isGone) {
        this.#replyBytes.take(encoded.length);
        this.#heldBytes += encoded.length;
      }
      return this.#end(undefined, encoded);
    } catch (error) {
      return this.#end(this.#deps.toStatus(error, this));
    }
  }

  #encode(result: unknown): Uint8Array {
    if (result instanceof EncodedReply) return result.bytes;
    const { output } = this.#served;
    const body = toBinary(output, create(output, result as MessageInitShape<DescMessage>));
    const bytes = new Uint8Array(EncodedReply.HEAD_BYTES + body.length);
    bytes.set(body, EncodedReply.HEAD_BYTES);
    return bytes;
  }

  #end(error: StatusError | undefined, body?: Uint8Array): void {
    this.#isRunning = false;
    if ((body?.length ?? 0) < BULKY_REPLY_MIN_BYTES) this.#turn?.give();
    if (!this.#isOver) {
      this.#isOver = true;
      const crossing = body === undefined ? undefined : bytesToCross(body);
      this.#port.post(
        {
          op: "answer",
          call: this.#id,
          status: error && packStatus(error),
          headers: this.#sentHeaders ? [] : flatOf(this.responseHeaders),
          trailers: flatOf(this.trailers),
          body: crossing?.bytes,
        },
        crossing?.transfer,
      );
      // Work that the handler left running for this call must stop.
      this.#abort?.abort(this.#cancelled ?? new StatusError(Code.CANCELLED, "the call has ended"));
    }
    if (this.#isGone) this.#leave();
  }

  #leave(): void {
    this.#turn?.give();
    this.#deps.places.leave(this, this.#hasBegun);
  }

  /** The reply of a stream: framed bytes go to the loop, which has the client's window. */
  #reply(): RunReply {
    const write = (buffer: Uint8Array): true => {
      if (this.#cancelled !== undefined) throw this.#cancelled;
      this.#port.post({ op: "write", call: this.#id, bytes: Uint8Array.from(buffer) });
      return true;
    };
    const writeAll = (buffers: readonly Uint8Array[]): true => {
      for (const buffer of buffers) write(buffer);
      return true;
    };
    return {
      outlet: { isWritable: true, stalledMs: 0, whenWritable: () => Promise.resolve(true), write, writeAll },
      sendHeaders: () => this.sendHeaders(),
      frame: (output, message) =>
        frame(toBinary(output, create(output, message as MessageInitShape<DescMessage>)), false),
      // The loop does not tell when the client has taken a message: all of them count until the call ends.
      hold: (framed) => {
        this.#replyBytes.take(framed.length);
        this.#heldBytes += framed.length;
      },
      release: () => undefined,
    };
  }
}
