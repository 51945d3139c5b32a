// The gRPC server: listening, connections and their limits, services, draining, certificates.
import type { Http2SecureServer, Http2Server, ServerHttp2Session } from "node:http2";
import { createServer as createNetServer, type Server as NetServer, type Socket } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import { AwakeClock } from "#base/awake-clock.ts";
import { type Clock, systemClock } from "#base/clock.ts";
import { waitAtMost } from "#base/waiting.ts";
import { Decompressor } from "#wire/framing/gzip.ts";
import {
  DEFAULT_SERVER_LIMITS,
  REFUSAL_LOAD_BYTES,
  SESSION_WINDOW_BYTES,
  type ServerLimits,
  SWEEP_MS,
} from "#wire/framing/limits.ts";
import { messageBytes, SharedBudget } from "#wire/framing/shared-budget.ts";
import { Code, MalformedMessageError, StatusError } from "#wire/framing/status.ts";
import type { CallContext, CalledMethod, Peer } from "./call-context.ts";
import { CallEntrance } from "./call-entrance.ts";
import type { CallGate } from "./call-gate.ts";
import { CallPlaces, type Places } from "./call-places.ts";
import { CallScheduler } from "./call-scheduler.ts";
import { ClosedSessions } from "./closed-sessions.ts";
import { Connection, connectionKey } from "./connection.ts";
import { type Door, Doorkeeper } from "./doorkeeper.ts";
import { FloodWatch } from "./flood-watch.ts";
import type { ServerInterceptor, ServiceHandlers } from "./handler.ts";
import { contextOf, createHttp, type ServerTls } from "./http-server.ts";
import { ReadScheduler } from "./read-scheduler.ts";
import { ReceiveWindows } from "./receive-windows.ts";
import { type ServedMethod, type ServiceOptions, serveAll } from "./served-method.ts";
import type { ServerCallDeps } from "./server-call.ts";
import { useStreamTable } from "./stream-table.ts";
import { UnprovenLoad } from "./unproven-load.ts";

const OVERLOAD_TOLD_MS = 60_000;

/** An unexpected event for the operator's attention. */
export interface ServerErrorEvent {
  /** "overload": connections were turned away, or closed for others; reported once a minute at most. */
  readonly kind: "handler" | "connection" | "listener" | "overload";
  readonly error: unknown;
  readonly method?: CalledMethod;
  readonly peer?: Peer;
}

/** Options of a server; without tls it uses plain HTTP/2. */
export interface GrpcServerOptions {
  readonly tls?: ServerTls;
  readonly limits?: Partial<ServerLimits>;
  /** Judges callers by their headers; without it every caller is trusted under the name of its network. */
  readonly gate?: CallGate;
  /** Admits connections elsewhere; by default the server's own doorkeeper. */
  readonly door?: Door<Connection>;
  /** Counts calls elsewhere; by default the server's own places. */
  readonly places?: Places;
  /** Wasted work of unproven callers; by default the server's own account. */
  readonly load?: UnprovenLoad;
  readonly interceptors?: readonly ServerInterceptor[];
  readonly clock?: Clock;
  /** Receives unexpected errors of handlers, and broken connections. */
  readonly onError?: (event: ServerErrorEvent) => void;
  /** Translates the product's own errors; undefined is answered UNKNOWN without the error's text. */
  readonly mapError?: (error: unknown) => StatusError | undefined;
}

/** Listening address of a server. Port 0 takes a free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** A gRPC server. Make it, add services, listen; finally drain or close it. */
export class GrpcServer {
  readonly #limits: ServerLimits;
  /** The clock for judging clients. */
  readonly #clock: AwakeClock;
  readonly #options: GrpcServerOptions;
  readonly #http: Http2Server | Http2SecureServer;
  readonly #listeners = new Set<NetServer>();
  /** Connections to the public listeners, and those to listeners for nodes alone. */
  readonly #public: Door<Connection>;
  readonly #control: Door<Connection>;
  /** Connections of both, by the key of their sockets. */
  readonly #connections = new Map<string, Connection>();
  readonly #methods = new Map<string, ServedMethod>();
  readonly #callDeps: ServerCallDeps;
  readonly #entrance: CallEntrance;
  readonly #closedSessions = new ClosedSessions();
  readonly #readScheduler = new ReadScheduler();
  readonly #load: UnprovenLoad;
  readonly #floods: FloodWatch;
  #callCount = 0;
  #turnedAway = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  readonly #windows: ReceiveWindows;
  #stopSweep: (() => void) | undefined;
  #isDraining = false;
  #whenEmpty: (() => void)[] = [];
  readonly #whenDraining: (() => void)[] = [];

  constructor(options: GrpcServerOptions = {}) {
    const limits = { ...DEFAULT_SERVER_LIMITS, ...options.limits };
    const clock = new AwakeClock(options.clock ?? systemClock, SWEEP_MS);
    this.#options = options;
    this.#limits = limits;
    this.#clock = clock;
    this.#windows = new ReceiveWindows(limits);
    this.#load = options.load ?? new UnprovenLoad(clock);
    const isGated = options.gate !== undefined;
    const doors = { limits, clock, isGated, isEncrypted: options.tls !== undefined, load: this.#load };
    this.#public = options.door ?? new Doorkeeper(doors);
    this.#control = new Doorkeeper(doors);
    const places = options.places ?? new CallPlaces(limits);
    this.#callDeps = {
      limits,
      clock,
      places,
      requestBytes: new SharedBudget(messageBytes(limits.heldRequestBytes)),
      unfoldedBytes: new SharedBudget(messageBytes(limits.heldRequestBytes)),
      replyBytes: new SharedBudget(messageBytes(limits.heldReplyBytes)),
      unfolder: new Decompressor(limits),
      interceptors: options.interceptors ?? [],
      toStatus: (error, call) => this.#toStatus(error, call),
      onGone: (call) => {
        this.#callCount--;
        const { kind, party } = call.standing;
        if (call.wasGivenUp && kind === "unproven") this.#load.charge(party, REFUSAL_LOAD_BYTES);
      },
      sweptAtMs: clock.steadyMs(),
    };
    this.#entrance = new CallEntrance({
      limits,
      gate: options.gate,
      methods: this.#methods,
      turns: new CallScheduler(),
      places,
      callDeps: this.#callDeps,
      onCall: () => {
        this.#callCount++;
      },
      onProof: (connection, standing) => connection.door.proved(connection, standing),
    });
    this.#floods = new FloodWatch({
      clock,
      connections: () => this.#connections.values(),
      onFlood: (error) => this.#report({ kind: "connection", error }),
    });
    this.#http = createHttp(limits, options.tls, (error) => this.#report({ kind: "connection", error }));
    this.#http.on("session", (session: ServerHttp2Session) => this.#adopt(session));
  }

  /** Adds a service. A method without a handler answers UNIMPLEMENTED. */
  addService<S extends DescService>(
    service: S,
    handlers: Partial<ServiceHandlers<S>>,
    options: ServiceOptions<S> = {},
  ): void {
    serveAll(this.#methods, service, handlers, options, this.#limits);
  }

  /**
   * Listens, and resolves to the address with the port that was taken. May be called for several addresses;
   * on one for nodes alone every connection without a node's certificate is closed after its handshake. A shared one is
   * listened on by several threads, among which the system divides the connections.
   */
  async listen(address: ListenAddress, { nodesOnly = false, isShared = false } = {}): Promise<ListenAddress> {
    const listener = createNetServer({ noDelay: true }, (socket) => this.#accept(socket, nodesOnly));
    await new Promise<void>((resolve, reject) => {
      listener.once("error", reject);
      listener.listen({ ...address, reusePort: isShared }, () => {
        listener.removeListener("error", reject);
        resolve();
      });
    });
    listener.on("error", (error) => this.#report({ kind: "listener", error }));
    this.#listeners.add(listener);
    this.#stopSweep ??= this.#clock.every(SWEEP_MS, () => this.#clock.look((nowMs) => this.#sweep(nowMs)));
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

  /** Calls in progress, including those without a client whose handler still runs. */
  callCount(): number {
    return this.#callCount;
  }

  /** Uses new certificates for every connection from now on; open ones keep theirs and lose no stream. */
  updateTls(tls: ServerTls): void {
    if (!("setSecureContext" in this.#http)) throw new TypeError("the server was made without TLS");
    // setSecureContext, unlike the constructor, trusts the public roots when ca is left out, so every option
    // is passed again.
    this.#http.setSecureContext(contextOf(tls));
  }

  /** Registers a callback for the start of draining, such as one that ends calls of unlimited length. */
  onDrain(callback: () => void): void {
    this.#whenDraining.push(callback);
  }

  /**
   * Stops listening, sends clients elsewhere, lets running calls finish for graceMs, then closes everything.
   */
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
    this.#closedSessions.close();
  }

  /** Closes everything at once; running calls are cancelled. */
  close(): Promise<void> {
    return this.drain(0);
  }

  #accept(socket: Socket, nodesOnly: boolean): void {
    const { gate } = this.#options;
    const door = nodesOnly ? this.#control : this.#public;
    const connection = new Connection(socket, {
      limits: this.#limits,
      nowMs: this.#clock.steadyMs(),
      door,
      load: gate === undefined ? undefined : this.#load,
      readScheduler: this.#readScheduler,
    });
    socket.on("error", (error) => this.#report({ kind: "connection", error }));
    const mayCome = !this.#isDraining && socket.remoteAddress !== undefined;
    const admission = mayCome ? door.admit(connection) : { isTaken: false };
    if (admission instanceof Promise) {
      // Node hands bytes read meanwhile to the session later, without a look at whether that has ended.
      connection.lane.pause();
      this.#keep(connection, socket);
      void admission.then((isTaken) => {
        if (!isTaken) return this.#turnAway(socket);
        if (!socket.destroyed) this.#begin(socket);
        return connection.lane.resume();
      });
      return;
    }
    const { isTaken, evicted } = admission;
    if (!isTaken) {
      this.#turnAway(socket);
      return;
    }
    if (evicted !== undefined) {
      this.#turnedAway++;
      evicted.destroy();
    }
    this.#keep(connection, socket);
    this.#begin(socket);
  }

  #keep(connection: Connection, socket: Socket): void {
    this.#connections.set(connection.key, connection);
    socket.once("close", () => this.#dropped(connection));
  }

  #begin(socket: Socket): void {
    this.#floods.opened();
    this.#http.emit("connection", socket);
  }

  #turnAway(socket: Socket): void {
    this.#turnedAway++;
    socket.destroy();
  }

  #dropped(connection: Connection): void {
    this.#connections.delete(connection.key);
    connection.door.remove(connection);
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
    this.#closedSessions.watch(session);
    useStreamTable(session);
    connection.attach(session);
    const isNode = this.#options.gate?.isNode(connection.peer) === true;
    const isMisplaced = connection.door === this.#control && !isNode;
    if (isMisplaced || !connection.door.greeted(connection, isNode)) {
      connection.destroy();
      return;
    }
    session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    connection.setWindow(this.#windows.bytes);
    session.on("stream", (stream, headers, _flags, raw: string[]) =>
      this.#entrance.take(connection, stream, headers, raw),
    );
    session.on("error", (error) => this.#report({ kind: "connection", error }));
    if (this.#isDraining) connection.drain();
  }

  #toStatus(error: unknown, call: Pick<CallContext, "method" | "peer">): StatusError {
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

  #sweep(nowMs: number): void {
    this.#callDeps.sweptAtMs = nowMs;
    let receiving = 0;
    for (const connection of this.#connections.values()) {
      connection.check(nowMs);
      receiving += connection.places.waitingCount;
      for (const call of connection.calls) if (call.isReceiving) receiving++;
    }
    this.#windows.fit(receiving, nowMs);
    for (const connection of this.#connections.values()) connection.tellWindow(this.#windows.bytes, nowMs);
    this.#floods.look();
    this.#tellOverload(nowMs);
  }

  #tellOverload(nowMs: number): void {
    if (this.#turnedAway === 0 || nowMs - this.#toldAtMs < OVERLOAD_TOLD_MS) return;
    this.#report({
      kind: "overload",
      error: new Error(`${this.#turnedAway} connections were turned away, or closed to make room for others`),
    });
    this.#toldAtMs = nowMs;
    this.#turnedAway = 0;
  }
}
