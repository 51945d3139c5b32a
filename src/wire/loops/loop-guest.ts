// What runs in the thread of a loop: a server whose judgements, places and answers come from the main thread.
import type { DescService } from "@bufbuild/protobuf";
import { systemClock } from "#base/clock.ts";
import { errorText } from "#base/log.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "#base/request-scope.ts";
import {
  BYTES_OF_PARTY,
  DEFAULT_SERVER_LIMITS,
  type ServerLimits,
  UNPROVEN_LOAD_OF_ALL,
  UNPROVEN_LOAD_OF_NETWORK,
} from "#wire/framing/limits.ts";
import { StatusError } from "#wire/framing/status.ts";
import type { CallContext, Peer } from "#wire/grpc/call-context.ts";
import type { CallGate, CallHead } from "#wire/grpc/call-gate.ts";
import type { PlacedCall, Places } from "#wire/grpc/call-places.ts";
import type { Connection } from "#wire/grpc/connection.ts";
import type { Door } from "#wire/grpc/doorkeeper.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import type { ServiceOptions } from "#wire/grpc/served-method.ts";
import { GrpcServer, type ServerErrorEvent } from "#wire/grpc/server.ts";
import type { Standing } from "#wire/grpc/standing.ts";
import { UnprovenLoad } from "#wire/grpc/unproven-load.ts";
import { BatchedPort, type Port } from "./batched-port.ts";
import { GuestCall } from "./guest-call.ts";
import type { FromLoop, JudgeMessage, PackedTls, ToLoop } from "./loop-messages.ts";
import type { LoopStart } from "./loop-server.ts";
import { flatOf, packPeer, packStatus, unpackStatus } from "./packed-status.ts";

/** A refusal of the main thread. */
class JudgedRefusal extends StatusError {
  readonly extra: readonly string[];

  constructor(refusal: StatusError, extra: readonly string[]) {
    super(refusal.code, refusal.message, refusal);
    this.extra = extra;
  }
}

/** Dependencies of a guest. */
export interface LoopGuestDeps {
  /** The end of the channel to the main thread. */
  readonly port: Port;
  readonly start: LoopStart;
  /** Takes settings of the product. */
  readonly onSet: (message: unknown) => void;
}

/** The server of one loop. */
export class LoopGuest {
  readonly server: GrpcServer;
  readonly #deps: LoopGuestDeps;
  readonly #port: BatchedPort<FromLoop>;
  readonly #mostComing: number;
  readonly #connections = new Map<number, Connection>();
  readonly #numbers = new Map<Connection, number>();
  /** Connections by the peers that their calls show. */
  readonly #peers = new WeakMap<Peer, number>();
  /** Connections whose admission is asked for: no more than could all be admitted. */
  readonly #coming = new Map<number, (isTaken: boolean) => void>();
  /** Connections turned away beyond these since the last question. */
  #unasked = 0;
  readonly #judged = new Map<number, PromiseWithResolvers<Standing>>();
  readonly #calls = new Map<number, GuestCall>();
  /** Paths of unary methods that the main thread answers. */
  readonly #forwarded = new Set<string>();
  #nextConnection = 1;
  #nextCall = 1;

  constructor(deps: LoopGuestDeps) {
    const { start, port } = deps;
    this.#deps = deps;
    this.#port = new BatchedPort<FromLoop>(port);
    const { tls, loops, requestsClientCertificate } = start;
    const limits = shareOf(start.limits, loops);
    this.#mostComing = limits.unprovenConnections;
    this.server = new GrpcServer({
      ...(tls === undefined
        ? {}
        : { tls: { ...plainTls(tls), requestClientCertificate: requestsClientCertificate } }),
      limits,
      gate: this.#gate(),
      door: this.#door(),
      places: this.#places(),
      load: new ReportedLoad(loops, this.#port),
      onError: (event) => this.#report(event),
    });
  }

  /** Adds a service whose calls the main thread answers; `streams` serves those with streams. */
  forward<S extends DescService>(
    service: S,
    options: ServiceOptions<S>,
    streams: Readonly<Record<string, object>>,
  ): void {
    const handlers: Record<string, object> = {};
    for (const { localName, methodKind, name } of service.methods) {
      const stream = streams[localName];
      if (stream !== undefined) handlers[localName] = stream;
      else if (methodKind === "unary") {
        this.#forwarded.add(`/${service.typeName}/${name}`);
        handlers[localName] = {
          forwards: (body: Uint8Array, context: CallContext) => this.#forward(body, context),
        };
      }
    }
    this.server.addService(service, handlers as Partial<ServiceHandlers<S>>, options);
  }

  /** The call behind a context. */
  callOf(context: CallContext): GuestCall {
    return context.standing.proof as GuestCall;
  }

  /** Takes a batch from the main thread. */
  take(batch: readonly ToLoop[]): void {
    for (const message of batch) this.#take(message);
  }

  #take(message: ToLoop): void {
    switch (message.op) {
      case "opened":
        this.#coming.get(message.connection)?.(message.isTaken);
        this.#coming.delete(message.connection);
        break;
      case "evict":
        this.#connections.get(message.connection)?.destroy();
        break;
      case "standing":
        this.#standing(message);
        break;
      case "refused": {
        const refusal = new JudgedRefusal(unpackStatus(message.status), message.extra);
        this.#judged.get(message.call)?.reject(refusal);
        this.#judged.delete(message.call);
        break;
      }
      case "listen":
        void this.#listen(message.host, message.port);
        break;
      case "tls":
        this.server.updateTls({
          ...plainTls(message.tls),
          requestClientCertificate: this.#deps.start.requestsClientCertificate,
        });
        break;
      case "set":
        this.#deps.onSet(message.message);
        break;
      case "drain":
        void this.server.drain(message.graceMs).then(() => this.#port.post({ op: "drained" }));
        break;
      default:
        this.#calls.get(message.call)?.take(message);
    }
  }

  async #listen(host: string, port: number): Promise<void> {
    try {
      const bound = await this.server.listen({ host, port }, { isShared: true });
      this.#port.post({ op: "listening", port: bound.port });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      this.#port.post({ op: "notListening", text: errorText(error), code });
    }
  }

  #standing({ call: id, kind, party, provesConnection }: Extract<ToLoop, { op: "standing" }>): void {
    const judged = this.#judged.get(id);
    this.#judged.delete(id);
    const call = new GuestCall(this.#port, id, provesConnection);
    this.#calls.set(id, call);
    judged?.resolve({ kind, party, proof: call });
  }

  #forward(body: Uint8Array, context: CallContext): Promise<unknown> {
    const call = this.callOf(context);
    call.request(body);
    return call.run(context);
  }

  #gate(): CallGate {
    return {
      judge: (head) => this.#judge(head),
      left: ({ proof }) => this.#end(proof as GuestCall),
      refused: (head, error) => this.#refused(head, error),
      isNode: () => false,
    };
  }

  /**
   * Asks the main thread. The first request of a proven connection's unary call goes with its headers, so that
   * one way there and back is enough: its bytes count for the connection's user until the answer.
   */
  #judge({ method, peer, metadata, timeoutMs }: CallHead): Standing | Promise<Standing> {
    const call = this.#nextCall++;
    const { path } = method;
    const connection = this.#peers.get(peer) ?? 0;
    const standing = this.#connections.get(connection)?.standing;
    const isAssumed = typeof standing === "object" && this.#forwarded.has(path);
    const headers = flatOf(metadata);
    const head: JudgeMessage = {
      op: "judge",
      call,
      connection,
      path,
      timeoutMs,
      headers,
      isAssumed,
      body: undefined,
    };
    this.#port.post(head);
    if (isAssumed) {
      const proof = new GuestCall(this.#port, call, false, head);
      this.#calls.set(call, proof);
      return { kind: "user", party: standing.user, proof };
    }
    const judged = Promise.withResolvers<Standing>();
    this.#judged.set(call, judged);
    return judged.promise;
  }

  /** The headers of a refusal; one of this thread's own is told to the main thread, which logs it. */
  #refused({ method, peer, metadata }: CallHead, error: unknown): readonly string[] {
    if (error instanceof JudgedRefusal) return error.extra;
    const id = requestIdFrom(metadata.get(REQUEST_ID_HEADER));
    const connection = this.#peers.get(peer);
    if (connection !== undefined && error instanceof StatusError) {
      const status = packStatus(error);
      const headers = flatOf(metadata);
      this.#port.post({ op: "turnedAway", connection, path: method.path, headers, status });
    }
    return [REQUEST_ID_HEADER, id];
  }

  #door(): Door<Connection> {
    return {
      admit: (connection) => {
        // While the main thread is held up, sockets must not pile up here.
        if (this.#coming.size >= this.#mostComing) {
          this.#unasked++;
          return { isTaken: false };
        }
        const id = this.#nextConnection++;
        const { key, address } = connection;
        this.#connections.set(id, connection);
        this.#numbers.set(connection, id);
        this.#port.post({ op: "open", connection: id, key, address, unasked: this.#unasked });
        this.#unasked = 0;
        return new Promise((resolve) => this.#coming.set(id, resolve));
      },
      greeted: (connection) => {
        const id = this.#numbers.get(connection);
        if (id === undefined) return false;
        this.#peers.set(connection.peer, id);
        this.#port.post({ op: "met", connection: id, peer: packPeer(connection.peer) });
        return true;
      },
      proved: (connection, { party, proof }) => {
        if ((proof as GuestCall).provesConnection && connection.standing === "unproven") {
          connection.standing = { user: party };
        }
      },
      remove: (connection) => {
        const id = this.#numbers.get(connection);
        if (id === undefined) return;
        this.#numbers.delete(connection);
        this.#connections.delete(id);
        this.#port.post({ op: "closed", connection: id });
      },
    };
  }

  #places(): Places {
    const callOf = ({ standing }: PlacedCall): GuestCall => standing.proof as GuestCall;
    return {
      expect: (call) => callOf(call).place(call),
      begin: () => undefined,
      cancelled: (call, reason) => callOf(call).cancelled(reason),
      leave: (call) => this.#end(callOf(call)),
    };
  }

  #end(call: GuestCall): void {
    this.#calls.delete(call.id);
    call.gone();
  }

  #report({ kind, error, method, peer }: ServerErrorEvent): void {
    // The main thread counts connections that are turned away.
    if (kind === "overload") return;
    this.#port.post({
      op: "report",
      kind,
      text: errorText(error),
      address: peer?.address,
      path: method?.path,
    });
  }
}

/** Wasted work counts in this loop, within its share, and in the main thread for new connections. */
class ReportedLoad extends UnprovenLoad {
  readonly #port: BatchedPort<FromLoop>;

  constructor(loops: number, port: BatchedPort<FromLoop>) {
    super(systemClock, {
      ofNetwork: partOf(UNPROVEN_LOAD_OF_NETWORK, loops),
      ofAll: partOf(UNPROVEN_LOAD_OF_ALL, loops),
    });
    this.#port = port;
  }

  override charge(network: string, bytes: number): boolean {
    this.#port.post({ op: "load", network, bytes });
    return super.charge(network, bytes);
  }
}

function partOf({ burst, perSecond }: { burst: number; perSecond: number }, loops: number) {
  return { burst: burst / loops, perSecond: perSecond / loops };
}

/** The limits of one of several loops: their sums are those of one server; a user's largest message fits. */
function shareOf(own: Partial<ServerLimits>, loops: number): ServerLimits {
  const limits = { ...DEFAULT_SERVER_LIMITS, ...own };
  return {
    ...limits,
    streamWindowsTotalBytes: limits.streamWindowsTotalBytes / loops,
    heldRequestBytes: Math.max(limits.heldRequestBytes / loops, limits.receiveMessageBytes / BYTES_OF_PARTY),
  };
}

function plainTls({ cert, key, ca }: PackedTls) {
  return { cert, key, ...(ca === undefined ? {} : { ca }) };
}
