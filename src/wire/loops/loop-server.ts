// A gRPC server whose connections several threads serve; policy, places and handlers stay in this one (D26).
import { createServer as createProbe } from "node:net";
import type { Worker } from "node:worker_threads";
import type { DescService } from "@bufbuild/protobuf";
import { type Clock, systemClock } from "#base/clock.ts";
import { waitAtMost } from "#base/waiting.ts";
import { DEFAULT_SERVER_LIMITS, type ServerLimits } from "#wire/framing/limits.ts";
import { messageBytes, SharedBudget } from "#wire/framing/shared-budget.ts";
import { Code, MalformedMessageError, StatusError } from "#wire/framing/status.ts";
import type { CallContext } from "#wire/grpc/call-context.ts";
import type { CallGate } from "#wire/grpc/call-gate.ts";
import { CallPlaces } from "#wire/grpc/call-places.ts";
import { CallScheduler } from "#wire/grpc/call-scheduler.ts";
import { Doorkeeper } from "#wire/grpc/doorkeeper.ts";
import type { ServerInterceptor, ServiceHandlers } from "#wire/grpc/handler.ts";
import { requireUsable, type ServerTls } from "#wire/grpc/http-server.ts";
import { type ServedMethod, type ServiceOptions, serveAll } from "#wire/grpc/served-method.ts";
import type { ListenAddress, ServerErrorEvent } from "#wire/grpc/server.ts";
import { UnprovenLoad } from "#wire/grpc/unproven-load.ts";
import { BatchedPort } from "./batched-port.ts";
import { LoopLink, type LoopLinkDeps } from "./loop-link.ts";
import type { FromLoop, LoopMessage, PackedTls, ToLoop } from "./loop-messages.ts";
import { OverloadCount } from "./overload-count.ts";

/** A thread that ended is followed by a new one after this time. */
const RESTART_MS = 100;
/** Time for a thread to end by itself before it is ended. */
const END_MS = 2_000;

/** Options of a server over several loops. */
export interface LoopServerOptions {
  /** Number of loops. */
  readonly loops: number;
  /** Starts the thread of a loop, which runs a LoopGuest. */
  readonly spawn: (start: LoopStart) => Worker;
  readonly tls?: ServerTls;
  readonly limits?: Partial<ServerLimits>;
  readonly gate: CallGate;
  readonly interceptors: readonly ServerInterceptor[];
  readonly clock?: Clock;
  readonly onError?: (event: ServerErrorEvent) => void;
  readonly mapError?: (error: unknown) => StatusError | undefined;
  /** Called when a thread has ended that should not have. */
  readonly onThreadEnd?: (error: unknown) => void;
}

/** What a loop gets at its start. */
export interface LoopStart {
  readonly loops: number;
  readonly limits: Partial<ServerLimits>;
  readonly tls: PackedTls | undefined;
  readonly requestsClientCertificate: boolean;
}

interface Loop {
  readonly link: LoopLink;
  readonly port: BatchedPort<ToLoop>;
  readonly worker: Worker;
  readonly listening: PromiseWithResolvers<number>;
  readonly ended: Promise<void>;
}

/** The server. Make it, add services, listen; finally drain or close it. */
export class LoopServer {
  readonly #options: LoopServerOptions;
  readonly #limits: ServerLimits;
  readonly #clock: Clock;
  readonly #methods = new Map<string, ServedMethod>();
  readonly #linkDeps: LoopLinkDeps;
  readonly #turnedAway: OverloadCount;
  readonly #loops = new Set<Loop>();
  readonly #settings = new Map<string, unknown>();
  #tls: ServerTls | undefined;
  #bound: ListenAddress | undefined;
  #isEnding = false;

  constructor(options: LoopServerOptions) {
    const { gate, interceptors, tls } = options;
    const limits = { ...DEFAULT_SERVER_LIMITS, ...options.limits };
    const clock = options.clock ?? systemClock;
    this.#options = options;
    this.#limits = limits;
    this.#clock = clock;
    this.#tls = tls;
    const toStatus = (error: unknown, call: Pick<CallContext, "method" | "peer">): StatusError =>
      this.#toStatus(error, call);
    const load = new UnprovenLoad(clock);
    this.#turnedAway = new OverloadCount(clock, (error) => this.#report({ kind: "overload", error }));
    this.#linkDeps = {
      gate,
      load,
      door: new Doorkeeper({ limits, clock, isGated: true, isEncrypted: tls !== undefined, load }),
      turns: new CallScheduler(),
      methods: this.#methods,
      callDeps: {
        limits,
        interceptors,
        toStatus,
        places: new CallPlaces(limits),
        replyBytes: new SharedBudget(messageBytes(limits.heldReplyBytes)),
      },
      toStatus,
      turnedAway: this.#turnedAway,
    };
  }

  /** Adds a service. The loops must know the same one: its handlers here are run for their calls. */
  addService<S extends DescService>(
    service: S,
    handlers: Partial<ServiceHandlers<S>>,
    options: ServiceOptions<S> = {},
  ): void {
    serveAll(this.#methods, service, handlers, options, this.#limits);
  }

  /**
   * Listens in all loops. A port that another process has is refused here, since a shared port would not be.
   */
  async listen({ host, port }: ListenAddress): Promise<ListenAddress> {
    await refuseTaken({ host, port });
    const first = this.#start();
    this.#bound = { host, port: await this.#listenIn(first, { host, port }) };
    const others = Array.from({ length: this.#options.loops - 1 }, () => this.#start());
    const bound = this.#bound;
    await Promise.all(others.map((loop) => this.#listenIn(loop, bound)));
    return bound;
  }

  /** Open connections. */
  connectionCount(): number {
    return sum(this.#loops, ({ link }) => link.connectionCount);
  }

  /** Calls in progress. */
  callCount(): number {
    return sum(this.#loops, ({ link }) => link.callCount);
  }

  /** Uses new certificates for every connection from now on. Throws for unusable ones: a loop would end by them. */
  updateTls(tls: ServerTls): void {
    if (this.#tls === undefined) throw new TypeError("the server was made without TLS");
    requireUsable(tls);
    this.#tls = tls;
    for (const { port } of this.#loops) port.post({ op: "tls", tls: packTls(tls) });
  }

  /** Sends a setting of the product to its half in every loop, also in those that start later. */
  set(name: string, message: unknown): void {
    this.#settings.set(name, message);
    for (const { port } of this.#loops) port.post({ op: "set", message });
  }

  /** Stops listening, sends clients elsewhere, lets running calls finish for graceMs, then closes everything. */
  async drain(graceMs: number): Promise<void> {
    this.#isEnding = true;
    this.#turnedAway.close();
    const loops = [...this.#loops];
    for (const { port } of loops) port.post({ op: "drain", graceMs });
    await Promise.all(
      loops.map(async ({ worker, ended }) => {
        await waitAtMost(this.#clock, graceMs + END_MS, ended);
        await worker.terminate();
        await ended;
      }),
    );
  }

  /** Closes everything at once; running calls are cancelled. */
  close(): Promise<void> {
    return this.drain(0);
  }

  #start(): Loop {
    const { loops, limits = {}, tls } = this.#options;
    const worker = this.#options.spawn({
      loops,
      limits,
      tls: this.#tls && packTls(this.#tls),
      requestsClientCertificate: tls?.requestClientCertificate === true,
    });
    const port = new BatchedPort<ToLoop>(worker);
    const link = new LoopLink(this.#linkDeps, port);
    const listening = Promise.withResolvers<number>();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const loop: Loop = { link, port, worker, listening, ended };
    this.#loops.add(loop);
    for (const message of this.#settings.values()) port.post({ op: "set", message });
    worker.on("message", (batch: readonly FromLoop[]) => {
      for (const message of batch) {
        if (typeof message === "number") link.gone(message);
        else if (!link.take(message)) this.#take(loop, message);
      }
    });
    let problem: unknown = new Error("the thread of a loop has ended");
    worker.on("error", (error) => {
      problem = error;
    });
    worker.on("exit", () => {
      this.#loops.delete(loop);
      link.lost();
      resolve();
      listening.reject(problem);
      if (!this.#isEnding) this.#follow(problem);
    });
    return loop;
  }

  async #listenIn({ port, listening }: Loop, address: ListenAddress): Promise<number> {
    port.post({ op: "listen", ...address });
    return listening.promise;
  }

  /** Starts another thread for one that ended. */
  #follow(problem: unknown): void {
    const bound = this.#bound;
    // Before the server listens, its caller gets the problem.
    if (bound === undefined) return;
    this.#options.onThreadEnd?.(problem);
    this.#clock.after(RESTART_MS, () => {
      if (this.#isEnding) return;
      this.#listenIn(this.#start(), bound).catch((error: unknown) =>
        this.#report({ kind: "listener", error }),
      );
    });
  }

  #take({ listening, worker }: Loop, message: LoopMessage): void {
    if (message.op === "listening") listening.resolve(message.port);
    else if (message.op === "notListening") {
      listening.reject(Object.assign(new Error(message.text), { code: message.code }));
    } else if (message.op === "drained") void worker.terminate();
    else if (message.op === "report") {
      const { kind, text, address, path } = message;
      const method = path === undefined ? undefined : this.#methods.get(path)?.called;
      this.#report({
        kind,
        error: new Error(text),
        ...(method === undefined ? {} : { method }),
        ...(address === undefined
          ? {}
          : { peer: { address, port: 0, encrypted: false, certificate: undefined } }),
      });
    }
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
}

/** Rejects with the system's error when another process listens on the port. */
async function refuseTaken({ host, port }: ListenAddress): Promise<void> {
  if (port === 0) return;
  const probe = createProbe();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", reject);
    probe.listen(port, host, resolve);
  });
  await new Promise<void>((resolve) => probe.close(() => resolve()));
}

function packTls({ cert, key, ca }: ServerTls): PackedTls {
  const authorities = Array.isArray(ca) ? ca.map(String).join("\n") : ca?.toString();
  return { cert: cert.toString(), key: key.toString(), ca: authorities };
}

function sum<T>(items: Iterable<T>, of: (item: T) => number): number {
  let total = 0;
  for (const item of items) total += of(item);
  return total;
}
