// Admits calls by their request headers: turn, caller and place, or a refusal before any body is read.
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { ServerLimits } from "#wire/framing/limits.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { refuse, refuseWith } from "#wire/framing/refusal.ts";
import { isGrpcContentType, type RequestHeaders, readRequestHeaders } from "#wire/framing/request-headers.ts";
import { outsideReading } from "#wire/framing/reset.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { ignoreError, listenAsServer } from "#wire/framing/stream-events.ts";
import type { CallGate, CallHead } from "./call-gate.ts";
import type { Places } from "./call-places.ts";
import { type CallScheduler, costOf } from "./call-scheduler.ts";
import type { Connection } from "./connection.ts";
import { headerBytes } from "./flood-gauge.ts";
import type { ServedMethod } from "./served-method.ts";
import { ServerCall, type ServerCallDeps } from "./server-call.ts";
import type { Standing } from "./standing.ts";

/** Dependencies of the entrance. */
export interface CallEntranceDeps {
  readonly limits: ServerLimits;
  readonly gate: CallGate | undefined;
  readonly methods: ReadonlyMap<string, ServedMethod>;
  readonly turns: CallScheduler;
  readonly places: Places;
  readonly callDeps: ServerCallDeps;
  readonly onCall: () => void;
  /** Called when a call with that standing begins on the connection. */
  readonly onProof: (connection: Connection, standing: Standing) => void;
}

/** A request with its headers. */
interface Request {
  readonly connection: Connection;
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly raw: string[];
}

type Head = { -readonly [K in keyof CallHead]: CallHead[K] };

/** The entrance of all calls of a server. */
export class CallEntrance {
  readonly #deps: CallEntranceDeps;

  constructor(deps: CallEntranceDeps) {
    this.#deps = deps;
  }

  /** Takes a stream with its headers; its call begins in the connection's turn. */
  take(connection: Connection, stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: string[]): void {
    stream.on("error", ignoreError);
    const { lane } = connection;
    connection.flood.took(headerBytes(raw));
    const { turns, methods } = this.#deps;
    const request = { connection, stream, headers, raw };
    const cost = costOf(raw) * (methods.get(headers[":path"] as string)?.cost ?? 1);
    const open = (): void => this.#open(request);
    const begin = (): void => {
      if (turns.mayBegin(lane, cost)) return open();
      const place = connection.queued.add(stream);
      turns.wait(lane, cost, () => {
        connection.queued.remove(place);
        open();
      });
    };
    // Streams of unproven callers do not wait here for their own calls, unless a proof may be on its way.
    const isUnproven = !connection.isProven && connection.entering.size === 0;
    if (isUnproven && connection.places.isFull) refuseUnseen(stream);
    else connection.places.take(stream, begin, open);
  }

  #open(request: Request): void {
    const { connection, stream } = request;
    if (connection.isRetired) {
      // The connection is closing.
      refuseUnseen(stream);
      return;
    }
    if ((stream.destroyed || stream.closed) && connection.entering.size > 0) {
      // Given up while a proof may be on its way: a proven client's are no refusals.
      if (!stream.endAfterHeaders) connection.flood.took(this.#deps.limits.streamWindowBytes);
      return;
    }
    const call = this.#callOf(request);
    if (call instanceof Promise) void call.then((later) => this.#start(request, later));
    else this.#start(request, call);
  }

  #start({ connection, stream, raw }: Request, call: ServerCall | undefined): void {
    if (call === undefined) {
      connection.refused(headerBytes(raw));
      if (!stream.endAfterHeaders) connection.flood.took(this.#deps.limits.streamWindowBytes);
      return;
    }
    this.#deps.onCall();
    listenAsServer(stream, call);
    call.start();
  }

  /** The call of a request; undefined where the request is answered otherwise. */
  #callOf(request: Request): ServerCall | undefined | Promise<ServerCall | undefined> {
    const { connection, stream, headers, raw } = request;
    // The client may have given it up while it waited.
    if (stream.destroyed || stream.closed) return undefined;
    if (headers[":method"] !== "POST") return refuse(stream, connection, [":status", "405", "allow", "POST"]);
    if (!isGrpcContentType(headers["content-type"])) return refuse(stream, connection, [":status", "415"]);
    const { gate, methods } = this.#deps;
    const served = methods.get(headers[":path"] as string);
    if (served === undefined) {
      return refuseWith(stream, connection, new StatusError(Code.UNIMPLEMENTED, "unknown service or method"));
    }
    const metadata = Metadata.fromRaw(raw);
    const head: Head = { method: served.called, metadata, peer: connection.peer, timeoutMs: undefined };
    let standing: Standing | Promise<Standing> | undefined;
    try {
      const read = readRequestHeaders(raw);
      head.timeoutMs = read.timeoutMs;
      standing = gate?.judge(head) ?? { kind: "user", party: connection.network };
      return standing instanceof Promise
        ? this.#whenJudged(request, head, served, read, standing)
        : this.#admit(request, metadata, served, read, standing);
    } catch (error) {
      if (standing !== undefined && !(standing instanceof Promise)) this.#left(standing);
      return this.#refused(request, head, error);
    }
  }

  async #whenJudged(
    request: Request,
    head: CallHead,
    served: ServedMethod,
    headers: RequestHeaders,
    coming: Promise<Standing>,
  ): Promise<ServerCall | undefined> {
    const { stream, connection } = request;
    const { lane, isProven } = connection;
    const place = connection.entering.add(stream);
    // Until its first caller is known, a connection brings no more bytes than those already read.
    if (!isProven) lane.pause();
    let standing: Standing | undefined;
    try {
      standing = await coming;
      if (stream.destroyed || stream.closed) {
        // Calls that a proven client gives up early are no refusals.
        this.#deps.onProof(connection, standing);
        return this.#left(standing);
      }
      return this.#admit(request, head.metadata, served, headers, standing);
    } catch (error) {
      if (standing !== undefined) this.#left(standing);
      return this.#refused(request, head, error);
    } finally {
      connection.entering.remove(place);
      if (!isProven) lane.resume();
    }
  }

  #admit(
    { connection, stream }: Request,
    metadata: Metadata,
    served: ServedMethod,
    headers: RequestHeaders,
    standing: Standing,
  ): ServerCall {
    const { limits, callDeps, places } = this.#deps;
    // Refusing calls after making their replies would let a client that never reads waste the server's
    // work.
    if (connection.held.bytes > limits.heldPerConnectionBytes / 2) {
      throw new StatusError(Code.RESOURCE_EXHAUSTED, "replies on this connection wait to be read");
    }
    const call = new ServerCall(callDeps, { stream, served, headers, metadata, connection, standing });
    places.expect(call);
    call.place = connection.calls.add(call);
    this.#deps.onProof(connection, standing);
    return call;
  }

  #left(standing: Standing): undefined {
    this.#deps.gate?.left?.(standing);
  }

  #refused({ connection, stream }: Request, head: CallHead, error: unknown): undefined {
    const { callDeps, gate } = this.#deps;
    const status = callDeps.toStatus(error, head);
    return refuseWith(stream, connection, status, gate?.refused(head, status));
  }
}

/** Ends a stream that the server has not looked at: its client may send the call again elsewhere. */
function refuseUnseen(stream: ServerHttp2Stream): void {
  if (!stream.destroyed) outsideReading(() => stream.close(constants.NGHTTP2_REFUSED_STREAM));
}
