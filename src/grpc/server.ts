// The gRPC server: listening, connections and their limits, services, draining, certificates.
import { constants as cryptoConstants } from "node:crypto";
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer as createNetServer, type Server as NetServer, type Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { DescService } from "@bufbuild/protobuf";
import { type Clock, systemClock } from "#base/clock.ts";
import { waitAtMost } from "#base/waiting.ts";
import type { CalledMethod, Peer } from "./call-context.ts";
import { CallTurns, costOf } from "./call-turns.ts";
import { Connection, connectionKey } from "./connection.ts";
import { headerBytes } from "./flood-gauge.ts";
import { FloodWatch } from "./flood-watch.ts";
import { MessageBudget } from "./frames.ts";
import { Unfolder } from "./gzip.ts";
import type { ServerInterceptor, ServiceHandlers } from "./handler.ts";
import {
  DEFAULT_SERVER_LIMITS,
  FRAME_BYTES,
  RESETS_AT_ONCE,
  RESETS_PER_SECOND,
  SESSION_MEMORY_MIB,
  SESSION_WINDOW_BYTES,
  type ServerLimits,
  STREAM_WINDOW_MIN_BYTES,
  SWEEP_MS,
} from "./limits.ts";
import { refuse, refuseWith } from "./refusal.ts";
import { isGrpcContentType, type RequestHeaders, readRequestHeaders } from "./request-headers.ts";
import { type ServedMethod, serve } from "./served-method.ts";
import { ServerCall, type ServerCallDeps } from "./server-call.ts";
import { SessionKeeper } from "./session-keeper.ts";
import { Code, MalformedMessageError, StatusError } from "./status.ts";
import { ignoreError, listenAsServer } from "./stream-events.ts";

/** Certificates of a server. Give `ca` whenever clients show certificates: without it the public roots would be trusted. */
export interface ServerTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
  /** Asks for a client certificate without requiring one: handlers see in `peer.certificate` what came. */
  readonly requestClientCertificate?: boolean;
}

/** Something that nobody asked for and somebody should see. */
export interface ServerErrorEvent {
  readonly kind: "handler" | "connection" | "listener";
  readonly error: unknown;
  readonly method?: CalledMethod;
  readonly peer?: Peer;
}

/** What a server is made of; without tls it speaks plain HTTP/2. */
export interface GrpcServerOptions {
  readonly tls?: ServerTls;
  readonly limits?: Partial<ServerLimits>;
  readonly interceptors?: readonly ServerInterceptor[];
  readonly clock?: Clock;
  /** Hears of handlers that threw something unexpected, and of broken connections. */
  readonly onError?: (event: ServerErrorEvent) => void;
  /** Translates the product's own errors; what stays undefined is answered UNKNOWN without its text. */
  readonly mapError?: (error: unknown) => StatusError | undefined;
}

/** Where a server listens. Port 0 takes a free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** A gRPC server. Make it, add services, listen; drain or close it in the end. */
export class GrpcServer {
  readonly #limits: ServerLimits;
  readonly #clock: Clock;
  readonly #options: GrpcServerOptions;
  readonly #http: Http2Server | Http2SecureServer;
  readonly #listeners = new Set<NetServer>();
  readonly #connections = new Map<string, Connection>();
  readonly #perAddress = new Map<string, number>();
  readonly #methods = new Map<string, ServedMethod>();
  readonly #callDeps: ServerCallDeps;
  readonly #keeper = new SessionKeeper();
  readonly #turns = new CallTurns();
  readonly #floods: FloodWatch;
  #callCount = 0;
  #windowBytes: number;
  #stopSweep: (() => void) | undefined;
  #isDraining = false;
  #whenEmpty: (() => void)[] = [];
  readonly #whenDraining: (() => void)[] = [];

  constructor(options: GrpcServerOptions = {}) {
    this.#options = options;
    this.#limits = { ...DEFAULT_SERVER_LIMITS, ...options.limits };
    this.#clock = options.clock ?? systemClock;
    this.#windowBytes = this.#limits.streamWindowBytes;
    this.#callDeps = {
      limits: this.#limits,
      clock: this.#clock,
      budget: new MessageBudget(this.#limits.heldMessageBytes),
      unfolder: new Unfolder(this.#limits),
      interceptors: options.interceptors ?? [],
      toStatus: (error, call) => this.#toStatus(error, call),
      onGone: () => {
        this.#callCount--;
      },
      sweptAtMs: this.#clock.steadyMs(),
    };
    this.#floods = new FloodWatch({
      clock: this.#clock,
      connections: () => this.#connections.values(),
      onFlood: (error) => this.#report({ kind: "connection", error }),
    });
    this.#http = this.#createHttp();
  }

  /** Adds a service. A method without a handler answers UNIMPLEMENTED. `name` serves it under another full name. */
  addService<S extends DescService>(
    service: S,
    handlers: Partial<ServiceHandlers<S>>,
    name: string = service.typeName,
  ): void {
    for (const method of service.methods) {
      const handler = (handlers as Record<string, Parameters<typeof serve>[1]>)[method.localName];
      const served = serve(method, handler, name);
      if (this.#methods.has(served.called.path))
        throw new TypeError(`${served.called.path} is served already`);
      this.#methods.set(served.called.path, served);
    }
  }

  /** Listens, and resolves to the address with the port that was taken. May be called for several addresses. */
  async listen(address: ListenAddress): Promise<ListenAddress> {
    const listener = createNetServer({ noDelay: true }, (socket) => this.#accept(socket));
    await new Promise<void>((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(address.port, address.host, () => {
        listener.removeListener("error", reject);
        resolve();
      });
    });
    listener.on("error", (error) => this.#report({ kind: "listener", error }));
    this.#listeners.add(listener);
    this.#stopSweep ??= this.#clock.every(SWEEP_MS, () => this.#sweep());
    const bound = listener.address();
    return {
      host: address.host,
      port: typeof bound === "object" && bound !== null ? bound.port : address.port,
    };
  }

  /** Open connections. */
  connectionCount(): number {
    return this.#connections.size;
  }

  /** Calls in progress, those included whose client is gone and whose handler still runs. */
  callCount(): number {
    return this.#callCount;
  }

  /** Uses new certificates for every connection from now on; open ones keep theirs and drop no stream. */
  updateTls(tls: ServerTls): void {
    if (!("setSecureContext" in this.#http)) throw new TypeError("the server was made without TLS");
    // setSecureContext, unlike the constructor, trusts the public roots when ca is left out, so all of it goes in again.
    this.#http.setSecureContext(contextOf(tls));
  }

  /** Has something done when draining begins, such as the end of calls that would otherwise last as long as their client. */
  onDrain(callback: () => void): void {
    this.#whenDraining.push(callback);
  }

  /** Stops listening, tells clients to go elsewhere, lets running calls finish for graceMs, then closes everything. */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    for (const listener of this.#listeners) listener.close();
    this.#listeners.clear();
    for (const connection of this.#connections.values()) connection.drain();
    for (const callback of this.#whenDraining) callback();
    if (this.#connections.size > 0 && graceMs > 0) {
      const empty = Promise.withResolvers<void>();
      this.#whenEmpty.push(empty.resolve);
      await waitAtMost(this.#clock, graceMs, empty.promise);
    }
    const closed = Promise.withResolvers<void>();
    this.#whenEmpty.push(closed.resolve);
    for (const connection of this.#connections.values()) connection.destroy();
    if (this.#connections.size > 0) await closed.promise;
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    this.#floods.close();
    this.#keeper.close();
  }

  /** Closes everything at once; running calls are cancelled. */
  close(): Promise<void> {
    return this.drain(0);
  }

  #createHttp(): Http2Server | Http2SecureServer {
    const limits = this.#limits;
    const options = {
      maxSessionMemory: SESSION_MEMORY_MIB,
      streamResetBurst: RESETS_AT_ONCE,
      streamResetRate: RESETS_PER_SECOND,
      settings: {
        enablePush: false,
        initialWindowSize: limits.streamWindowBytes,
        maxConcurrentStreams: limits.maxConcurrentStreams,
        maxHeaderListSize: limits.maxHeaderListBytes,
        maxFrameSize: FRAME_BYTES,
      },
    };
    const { tls } = this.#options;
    if (tls === undefined) return this.#prepared(createServer(options));
    return this.#prepared(
      createSecureServer({
        ...options,
        ...contextOf(tls),
        allowHTTP1: false,
        handshakeTimeout: limits.handshakeMs,
        requestCert: tls.requestClientCertificate === true,
        rejectUnauthorized: false,
      }),
    );
  }

  #prepared<H extends Http2Server | Http2SecureServer>(http: H): H {
    http.on("session", (session: ServerHttp2Session) => this.#adopt(session));
    http.on("sessionError", (error) => this.#report({ kind: "connection", error }));
    http.on("tlsClientError", (error: Error, socket: Socket) => {
      socket.destroy();
      this.#report({ kind: "connection", error });
    });
    http.on("unknownProtocol", (socket: Socket) => socket.destroy());
    return http;
  }

  #accept(socket: Socket): void {
    const connection = new Connection(socket, this.#limits, this.#clock.steadyMs());
    const { network } = connection;
    const fromAddress = this.#perAddress.get(network) ?? 0;
    socket.on("error", (error) => this.#report({ kind: "connection", error }));
    const isFull =
      this.#connections.size >= this.#limits.maxConnections ||
      fromAddress >= this.#limits.maxConnectionsPerAddress;
    if (isFull || this.#isDraining || socket.remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    this.#connections.set(connection.key, connection);
    this.#perAddress.set(network, fromAddress + 1);
    socket.once("close", () => this.#dropped(connection));
    this.#floods.opened();
    this.#http.emit("connection", socket);
  }

  #dropped(connection: Connection): void {
    this.#connections.delete(connection.key);
    const left = (this.#perAddress.get(connection.network) ?? 1) - 1;
    if (left === 0) this.#perAddress.delete(connection.network);
    else this.#perAddress.set(connection.network, left);
    for (const call of connection.calls) call.onClose();
    if (this.#connections.size === 0) {
      for (const resolve of this.#whenEmpty.splice(0)) resolve();
    }
  }

  #adopt(session: ServerHttp2Session): void {
    const connection = this.#connections.get(connectionKey(session.socket));
    if (connection === undefined) {
      session.destroy();
      return;
    }
    this.#keeper.watch(session);
    connection.attach(session);
    session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    if (this.#windowBytes !== this.#limits.streamWindowBytes) {
      session.settings({ initialWindowSize: this.#windowBytes });
    }
    session.on(
      "stream",
      (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
        stream.on("error", ignoreError);
        const { lane } = connection;
        connection.flood.took(headerBytes(raw));
        const cost = costOf(raw) * (this.#methods.get(headers[":path"] as string)?.cost ?? 1);
        if (this.#turns.mayBegin(lane, cost)) this.#open(connection, stream, headers, raw);
        else this.#turns.wait(lane, cost, () => this.#open(connection, stream, headers, raw));
      },
    );
    session.on("error", (error) => this.#report({ kind: "connection", error }));
    if (this.#isDraining) connection.drain();
  }

  #open(
    connection: Connection,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    raw: string[],
  ): void {
    const call = this.#callOf(connection, stream, headers, raw);
    if (call === undefined) {
      if (!stream.endAfterHeaders) connection.flood.took(this.#limits.streamWindowBytes);
      return;
    }
    this.#callCount++;
    listenAsServer(stream, call);
    call.start();
  }

  /** The call that a request becomes; undefined where it is answered otherwise. */
  #callOf(
    connection: Connection,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    raw: string[],
  ): ServerCall | undefined {
    // It may have been given up while it waited.
    if (stream.destroyed || stream.closed) return undefined;
    if (headers[":method"] !== "POST") return refuse(stream, connection, [":status", "405", "allow", "POST"]);
    if (!isGrpcContentType(headers["content-type"])) return refuse(stream, connection, [":status", "415"]);
    const served = this.#methods.get(headers[":path"] as string);
    let read: RequestHeaders;
    try {
      if (served === undefined) throw new StatusError(Code.UNIMPLEMENTED, "unknown service or method");
      read = readRequestHeaders(raw);
      if (this.#callCount >= this.#limits.maxCalls) {
        throw new StatusError(Code.RESOURCE_EXHAUSTED, "too many calls in progress");
      }
      // Were they refused with their replies in hand, a client that never reads would have the server work for nothing.
      if (connection.held.bytes > this.#limits.heldPerConnectionBytes / 2) {
        throw new StatusError(Code.RESOURCE_EXHAUSTED, "replies on this connection wait to be read");
      }
    } catch (error) {
      return refuseWith(stream, connection, error as StatusError);
    }
    return new ServerCall(this.#callDeps, stream, served, read, connection);
  }

  #toStatus(error: unknown, call: ServerCall): StatusError {
    if (error instanceof MalformedMessageError) return error.asAnswer();
    if (error instanceof StatusError) return error;
    const mapped = this.#options.mapError?.(error);
    if (mapped !== undefined) return mapped;
    this.#report({ kind: "handler", error, method: call.method, peer: call.peer });
    return new StatusError(Code.UNKNOWN, "internal error", { cause: error });
  }

  #report(event: ServerErrorEvent): void {
    this.#options.onError?.(event);
  }

  #sweep(): void {
    const nowMs = this.#clock.steadyMs();
    this.#callDeps.sweptAtMs = nowMs;
    let receiving = 0;
    for (const connection of this.#connections.values()) {
      connection.check(nowMs);
      for (const call of connection.calls) if (call.isReceiving) receiving++;
    }
    this.#fitWindows(receiving);
    this.#floods.look();
  }

  /** Halves or doubles the receive window of streams so that all of them together stay within their total. */
  #fitWindows(receiving: number): void {
    const { streamWindowBytes, streamWindowsTotalBytes } = this.#limits;
    let windowBytes = streamWindowBytes;
    while (windowBytes > STREAM_WINDOW_MIN_BYTES && windowBytes * receiving > streamWindowsTotalBytes) {
      windowBytes = Math.max(STREAM_WINDOW_MIN_BYTES, windowBytes / 2);
    }
    if (windowBytes === this.#windowBytes) return;
    this.#windowBytes = windowBytes;
    for (const { session } of this.#connections.values()) {
      if (session !== undefined && !session.destroyed && !session.closed) {
        session.settings({ initialWindowSize: windowBytes });
      }
    }
  }
}

const contextOf = (tls: ServerTls): SecureContextOptions => ({
  cert: tls.cert,
  key: tls.key,
  ...(tls.ca === undefined ? {} : { ca: tls.ca as string | Buffer }),
  minVersion: "TLSv1.2",
  // A resumed session would keep the first verdict on a client's certificate.
  secureOptions: cryptoConstants.SSL_OP_NO_TICKET,
});
