// The way from request headers to a call: whose turn it is, who calls, whether there is a place; else a refusal, before any body is read.
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { ServerLimits } from "#wire/framing/limits.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { refuse, refuseWith } from "#wire/framing/refusal.ts";
import { isGrpcContentType, readRequestHeaders } from "#wire/framing/request-headers.ts";
import { outsideReading } from "#wire/framing/reset.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { ignoreError, listenAsServer } from "#wire/framing/stream-events.ts";
import type { CallGate } from "./call-gate.ts";
import type { CallPlaces } from "./call-places.ts";
import { type CallScheduler, costOf } from "./call-scheduler.ts";
import type { Connection } from "./connection.ts";
import { headerBytes } from "./flood-gauge.ts";
import type { ServedMethod } from "./served-method.ts";
import { ServerCall, type ServerCallDeps } from "./server-call.ts";
import type { Standing } from "./standing.ts";

/** What the entrance needs of its server. */
export interface CallEntranceDeps {
  readonly limits: ServerLimits;
  readonly gate: CallGate | undefined;
  readonly methods: ReadonlyMap<string, ServedMethod>;
  readonly turns: CallScheduler;
  readonly places: CallPlaces;
  readonly callDeps: ServerCallDeps;
  readonly onCall: () => void;
  /** A call with that standing begins on the connection. */
  readonly onProof: (connection: Connection, standing: Standing) => void;
}

/** A request as its headers have come. */
interface Request {
  readonly connection: Connection;
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly raw: string[];
}

/** Where all calls of a server come in. */
export class CallEntrance {
  readonly #deps: CallEntranceDeps;

  constructor(deps: CallEntranceDeps) {
    this.#deps = deps;
  }

  /** Takes a stream whose headers have come; it begins in its connection's turn. */
  take(connection: Connection, stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: string[]): void {
    stream.on("error", ignoreError);
    const { lane } = connection;
    connection.flood.took(headerBytes(raw));
    const { turns, methods } = this.#deps;
    const request = { connection, stream, headers, raw };
    const cost = costOf(raw) * (methods.get(headers[":path"] as string)?.cost ?? 1);
    const open = (): void => this.#open(request);
    const begin = (): void => {
      if (turns.mayBegin(lane, cost)) open();
      else turns.wait(lane, cost, open);
    };
    // Those who have proven nothing have no streams wait here for their own.
    if (!connection.isProven && connection.places.isFull) refuseUnseen(stream);
    else connection.places.take(stream, begin, open);
  }

  #open(request: Request): void {
    const { connection, stream } = request;
    if (connection.isRetired) {
      // It was told to go.
      refuseUnseen(stream);
      return;
    }
    const call = this.#callOf(request);
    if (call === undefined) {
      connection.refused(headerBytes(request.raw));
      if (!stream.endAfterHeaders) connection.flood.took(this.#deps.limits.streamWindowBytes);
      return;
    }
    this.#deps.onCall();
    listenAsServer(stream, call);
    call.start();
  }

  /** The call that a request becomes; undefined where it is answered otherwise. */
  #callOf({ connection, stream, headers, raw }: Request): ServerCall | undefined {
    // It may have been given up while it waited.
    if (stream.destroyed || stream.closed) return undefined;
    if (headers[":method"] !== "POST") return refuse(stream, connection, [":status", "405", "allow", "POST"]);
    if (!isGrpcContentType(headers["content-type"])) return refuse(stream, connection, [":status", "415"]);
    const { limits, gate, methods, callDeps, places } = this.#deps;
    const served = methods.get(headers[":path"] as string);
    if (served === undefined) {
      return refuseWith(stream, connection, new StatusError(Code.UNIMPLEMENTED, "unknown service or method"));
    }
    const metadata = Metadata.fromRaw(raw);
    const head = { method: served.called, metadata, peer: connection.peer };
    try {
      const read = readRequestHeaders(raw);
      const standing = gate?.judge(head) ?? { kind: "user", party: connection.network };
      // Were they refused with their replies in hand, a client that never reads would have the server work for nothing.
      if (connection.held.bytes > limits.heldPerConnectionBytes / 2) {
        throw new StatusError(Code.RESOURCE_EXHAUSTED, "replies on this connection wait to be read");
      }
      const call = new ServerCall(callDeps, {
        stream,
        served,
        headers: read,
        metadata,
        connection,
        standing,
      });
      places.expect(call);
      connection.calls.add(call);
      this.#deps.onProof(connection, standing);
      return call;
    } catch (error) {
      const status = callDeps.toStatus(error, head);
      return refuseWith(stream, connection, status, gate?.refused(head, status));
    }
  }
}

/** Ends a stream at which nobody has looked: its client may send the call again elsewhere. */
function refuseUnseen(stream: ServerHttp2Stream): void {
  if (!stream.destroyed) outsideReading(() => stream.close(constants.NGHTTP2_REFUSED_STREAM));
}
