// The reply to one call: headers, messages and status, and how they are sent.
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Clock } from "#base/clock.ts";
import { EncodedReply } from "#wire/framing/encoded-reply.ts";
import { FRAME_HEADER_BYTES, frame, frameInPlace, type MessageBytes } from "#wire/framing/frames.ts";
import { compress } from "#wire/framing/gzip.ts";
import {
  LINGER_MS,
  SEND_WINDOW_BYTES,
  type ServerLimits,
  SMALL_MESSAGE_BYTES,
} from "#wire/framing/limits.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import type { RequestHeaders } from "#wire/framing/request-headers.ts";
import { resetStream } from "#wire/framing/reset.ts";
import { SendQueue } from "#wire/framing/send-queue.ts";
import { Code, StatusError, statusHeaders } from "#wire/framing/status.ts";
import type { LinkPace } from "./link-pace.ts";

/** Shared by all replies of a server. */
export interface ReplyDeps {
  readonly limits: ServerLimits;
  readonly clock: Clock;
  /** Steady time of the last sweep, precise enough for limits in seconds. */
  sweptAtMs: number;
}

// node:http2 does not change these lists, so that all replies share them.
const OK_HEADERS: readonly string[] = [":status", "200", "content-type", "application/grpc"];
const OK_TRAILERS: OutgoingHttpHeaders = { "grpc-status": "0" };
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false };
const TRAILERS_ONLY = { endStream: true, sendDate: false };
/** Smaller replies are not worth compressing. */
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

/** What a reply needs of its connection. */
export interface ReplyConnection {
  /** Large replies that the client has not taken yet. */
  readonly held: { bytes: number };
  readonly pace: LinkPace;
}

/** Answers one call. It is finished once, with or without a status error; later output is dropped. */
export class ServerReply {
  readonly #deps: ReplyDeps;
  readonly #stream: ServerHttp2Stream;
  readonly #connection: ReplyConnection;
  readonly #budget: MessageBytes;
  readonly #usesGzip: boolean;
  #headers: Metadata | undefined;
  #trailers: Metadata | undefined;
  #outlet: SendQueue | undefined;
  #trailersToSend: OutgoingHttpHeaders = OK_TRAILERS;
  #heldBytes = 0;
  #isFinished = false;
  #finishedAtMs = 0;
  /** How long nothing was sent, as of the last check, and what the client had taken of all calls when that began. */
  #idleMs = 0;
  #idleSinceBytes: number;
  #failure: StatusError | undefined;

  constructor(
    deps: ReplyDeps,
    stream: ServerHttp2Stream,
    request: RequestHeaders,
    connection: ReplyConnection,
    budget: MessageBytes,
  ) {
    this.#budget = budget;
    this.#deps = deps;
    this.#connection = connection;
    this.#idleSinceBytes = connection.pace.takenBytes;
    this.#stream = stream;
    // A gzip request gets a gzip answer.
    this.#usesGzip = request.encoding === "gzip" && request.acceptsGzip;
  }

  get headers(): Metadata {
    this.#headers ??= new Metadata();
    return this.#headers;
  }

  get trailers(): Metadata {
    this.#trailers ??= new Metadata();
    return this.#trailers;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** The send queue for messages of a stream. */
  get outlet(): SendQueue {
    if (this.#outlet === undefined) {
      this.#outlet = new SendQueue(this.#stream, this.#deps.clock);
      if (this.#failure !== undefined) this.#outlet.fail(this.#failure);
    }
    return this.#outlet;
  }

  /**
   * Encodes and frames a message, compressed where agreed and smaller. RESOURCE_EXHAUSTED above the limit.
   */
  frame(desc: DescMessage, message: unknown): Buffer | Promise<Buffer> {
    const encoded = message instanceof EncodedReply ? message.bytes : undefined;
    const body =
      encoded?.subarray(FRAME_HEADER_BYTES) ??
      toBinary(desc, create(desc, message as MessageInitShape<DescMessage>));
    const { sendMessageBytes } = this.#deps.limits;
    if (body.length > sendMessageBytes) {
      throw new StatusError(
        Code.RESOURCE_EXHAUSTED,
        `reply of ${body.length} bytes is larger than the limit of ${sendMessageBytes}`,
      );
    }
    if (!this.#usesGzip || body.length < COMPRESS_MIN_BYTES) {
      return encoded === undefined ? frame(body, false) : frameInPlace(encoded);
    }
    return compress(body).then((compressed) => frame(compressed, true));
  }

  /** Counts a large message against the server's budget; throws RESOURCE_EXHAUSTED. One at a time. */
  hold(framed: Buffer): void {
    this.release();
    if (framed.length <= SMALL_MESSAGE_BYTES) return;
    const { limits } = this.#deps;
    if (this.#connection.held.bytes + framed.length > limits.heldPerConnectionBytes)
      throw new StatusError(Code.RESOURCE_EXHAUSTED, "too many large replies wait on this connection");
    this.#budget.take(framed.length);
    this.#connection.held.bytes += framed.length;
    this.#heldBytes = framed.length;
  }

  /** Uncounts the held message, which is sent or given up. */
  release(): void {
    this.#budget.give(this.#heldBytes);
    this.#connection.held.bytes -= this.#heldBytes;
    this.#heldBytes = 0;
  }

  /** Sends the headers unless they are sent. */
  sendHeaders(): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    let headers = OK_HEADERS;
    if (this.#usesGzip || this.#headers !== undefined) {
      const list = OK_HEADERS.slice();
      if (this.#usesGzip) list.push("grpc-encoding", "gzip");
      this.#headers?.appendTo(list);
      headers = list;
    }
    stream.respond(headers, WITH_TRAILERS);
  }

  /** Ends the reply from outside: writers get the error, and a connected client gets the status. */
  cancel(reason: StatusError): void {
    this.#failure ??= reason;
    this.#outlet?.fail(reason);
    this.finish(reason);
  }

  /** Sends the rest: the one message of a unary reply, and the status; undefined for OK. */
  finish(error: StatusError | undefined, framed?: Buffer): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#finishedAtMs = this.#deps.sweptAtMs;
    if (this.#stream.destroyed || this.#stream.closed) return;
    try {
      // The handler's own headers go before the status, so that the reply is then not one block.
      if (error !== undefined && !this.#stream.headersSent && this.#headers === undefined) {
        const headers = OK_HEADERS.concat(statusHeaders(error));
        this.#trailers?.appendTo(headers);
        this.#stream.respond(headers, TRAILERS_ONLY);
        return;
      }
      if (error !== undefined || this.#trailers !== undefined) {
        const raw = error === undefined ? ["grpc-status", "0"] : statusHeaders(error);
        this.#trailers?.appendTo(raw);
        this.#trailersToSend = toObject(raw);
      }
      this.sendHeaders();
      this.#end(framed);
    } catch {
      // HTTP/2 refuses some metadata, such as two values of a single-valued header: the client must not wait
      // for ever.
      resetStream(this.#stream);
    }
  }

  /** The last message is sent; the status follows. */
  sendTrailers(): void {
    if (this.#stream.destroyed || this.#stream.closed) return;
    try {
      this.#stream.sendTrailers(this.#trailersToSend);
    } catch {
      resetStream(this.#stream);
    }
  }

  /** True when the client has taken nothing for longer than the limit, and this was not for want of a turn. */
  isStalled(nowMs: number): boolean {
    return this.#isGivenUp(this.#outlet?.stalledMs ?? 0, nowMs);
  }

  /** Whether nothing was sent for longer than the limit; called every second, each time with the time so far. */
  #isGivenUp(idleMs: number, nowMs: number): boolean {
    const { pace } = this.#connection;
    // A shorter time than before: some was sent since.
    if (idleMs === 0 || idleMs < this.#idleMs) this.#idleSinceBytes = pace.takenBytes;
    this.#idleMs = idleMs;
    const { sendStallMs } = this.#deps.limits;
    return idleMs > sendStallMs && !pace.isSlow(this.#idleSinceBytes, nowMs, sendStallMs);
  }

  /** Ends the stream of a finished call by force if necessary; true when it ended by itself. */
  endIfLingering(nowMs: number): boolean {
    // The status may wait behind other replies long after the last message.
    const isOut = this.#stream.state.localClose === 1;
    // A reply that moves may take its time; a stalled one is given up, and so is a client that only sends.
    const idleMs = this.#outlet?.isWaiting === true ? this.#outlet.stalledMs : nowMs - this.#finishedAtMs;
    if (isOut ? idleMs <= LINGER_MS : !this.#isGivenUp(idleMs, nowMs)) return false;
    if (isOut) {
      this.#stream.close(constants.NGHTTP2_NO_ERROR);
      this.#stream.destroy();
    } else {
      this.abandon();
    }
    return true;
  }

  /** Resets the stream without waiting for the client to take earlier bytes. */
  abandon(): void {
    resetStream(this.#stream);
  }

  #end(framed: Buffer | undefined): void {
    if (framed === undefined) {
      this.#stream.end();
    } else if (framed.length <= SEND_WINDOW_BYTES) {
      this.#stream.end(framed);
    } else {
      void Promise.resolve(this.outlet.write(framed)).then(
        () => this.#stream.end(),
        () => this.abandon(),
      );
    }
  }
}
