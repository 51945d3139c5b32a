// One HTTP exchange with the object store: bounded in time and size, ended at once when the store is closed.
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, Agent as PlainAgent } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import type { LookupFunction } from "node:net";
import type { Clock } from "#base/clock.ts";
import { Agent, request as plainRequest } from "#os/http.ts";
import { StoreError } from "./store-error.ts";

/** The bytes of a request, which may be sent more than once. */
export interface RequestBody {
  readonly byteCount: number;
  /** Slices in order. They must not change until the request has ended. */
  slices(): Iterable<Buffer> | AsyncIterable<Buffer>;
}

/** What goes out, signed already. */
export interface Outgoing {
  readonly method: string;
  readonly host: string;
  readonly port: number | undefined;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: RequestBody | undefined;
  /** Bytes that a good answer may have; others may have ANSWER_TEXT_MAX_BYTES. */
  readonly answerBytes?: number;
  /** Takes the pieces of a good answer instead of its text. */
  readonly sink?: ((piece: Buffer) => void) | undefined;
}

/** What came back. */
export interface Incoming {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Empty when a sink took it. */
  readonly text: string;
}

/** How long a store may take. */
export interface StorePatience {
  /** Until a connection, with TLS, is up. */
  readonly connectMs: number;
  /** Between two pieces of an answer, and until its head after the last byte that the rate below allows for. */
  readonly silenceMs: number;
  /** Slowest useful rate, which bounds the whole exchange. */
  readonly bytesPerSecond: number;
}

/** Patience with a store on another machine. */
export const STORE_PATIENCE: StorePatience = { connectMs: 10_000, silenceMs: 20_000, bytesPerSecond: 65_536 };
/** Longest text of an answer: a thousand keys of 512 bytes, twice. */
const ANSWER_TEXT_MAX_BYTES = 1_048_576;
/** Connections to the store; more requests wait for one. */
const CONNECTIONS_MAX = 160;
/** Idle connections that are kept, and for how long: below the minute after which servers end them. */
const CONNECTIONS_KEPT = 64;
const KEPT_MS = 20_000;

/** The kept connections to one store. */
export class StoreConnections {
  readonly #isSecure: boolean;
  readonly #agent: PlainAgent | SecureAgent;
  readonly #ca: string | undefined;
  readonly #clock: Pick<Clock, "after">;
  readonly #patience: StorePatience;
  readonly #open = new Set<ClientRequest>();
  #isClosed = false;

  constructor(deps: {
    isSecure: boolean;
    /** PEM of the authority that alone is trusted. */
    ca: string | undefined;
    clock: Pick<Clock, "after">;
    patience: StorePatience;
    /** Finds addresses in place of the system. */
    lookup?: LookupFunction | undefined;
  }) {
    const kept = { keepAlive: true, maxSockets: CONNECTIONS_MAX, maxFreeSockets: CONNECTIONS_KEPT };
    const lookup = deps.lookup === undefined ? {} : { lookup: deps.lookup };
    const settings = { ...kept, ...lookup, timeout: KEPT_MS, scheduling: "lifo" as const };
    this.#isSecure = deps.isSecure;
    this.#ca = deps.ca;
    this.#agent = deps.isSecure ? new SecureAgent(settings) : new Agent(settings);
    this.#clock = deps.clock;
    this.#patience = deps.patience;
  }

  /** Ends every exchange and connection. Later exchanges are refused. */
  close(): void {
    this.#isClosed = true;
    const closed = new StoreError("closed", "the object store was closed");
    for (const request of this.#open) request.destroy(closed);
    this.#agent.destroy();
  }

  /** Resolves with any whole answer. Throws StoreError `unreachable` or `closed`. */
  async exchange(outgoing: Outgoing): Promise<Incoming> {
    if (this.#isClosed) throw new StoreError("closed", "the object store was closed");
    const request = this.#begin(outgoing);
    this.#open.add(request);
    const bytes = (outgoing.body?.byteCount ?? 0) + (outgoing.answerBytes ?? 0);
    const limitMs = this.#patience.silenceMs + (bytes / this.#patience.bytesPerSecond) * 1000;
    const late = (): unknown => request.destroy(new Error("no whole answer in time"));
    const cancel = this.#clock.after(this.#patience.connectMs + limitMs, late);
    try {
      return await this.#run(request, outgoing);
    } catch (cause) {
      if (cause instanceof StoreError) throw cause;
      throw new StoreError("unreachable", "the object store does not answer", { cause: plain(cause) });
    } finally {
      cancel();
      this.#open.delete(request);
    }
  }

  #begin({ method, host, port, path, headers }: Outgoing): ClientRequest {
    const { connectMs } = this.#patience;
    const options = { method, host, path, headers, ...(port === undefined ? {} : { port }) };
    const request = this.#isSecure
      ? secureRequest({
          ...options,
          agent: this.#agent as SecureAgent,
          ...(this.#ca === undefined ? {} : { ca: this.#ca }),
        })
      : plainRequest({ ...options, agent: this.#agent });
    request.once("socket", (socket) => {
      if (!socket.connecting) return;
      const cancel = this.#clock.after(connectMs, () => request.destroy(new Error("no connection in time")));
      const up = this.#isSecure ? "secureConnect" : "connect";
      socket.once(up, cancel).once("close", cancel);
    });
    return request;
  }

  async #run(request: ClientRequest, outgoing: Outgoing): Promise<Incoming> {
    const { promise, resolve, reject } = Promise.withResolvers<Incoming>();
    request.on("error", reject);
    request.once("response", (answer) => {
      this.#read(request, answer, outgoing).then(resolve, reject);
    });
    // An answer may come before the end of the body: then nothing waits for the rest of it.
    send(request, outgoing.body).catch(reject);
    try {
      return await promise;
    } catch (error) {
      request.destroy();
      throw error;
    } finally {
      if (!request.writableFinished) request.destroy();
    }
  }

  #read(request: ClientRequest, answer: IncomingMessage, outgoing: Outgoing): Promise<Incoming> {
    const { promise, resolve, reject } = Promise.withResolvers<Incoming>();
    const status = answer.statusCode ?? 0;
    const sink = status === 200 || status === 206 ? outgoing.sink : undefined;
    const limit = sink === undefined ? ANSWER_TEXT_MAX_BYTES : (outgoing.answerBytes ?? 0);
    const pieces: Buffer[] = [];
    let byteCount = 0;
    const stop = (why: string): unknown => request.destroy(new Error(why));
    const { silenceMs } = this.#patience;
    let cancel = this.#clock.after(silenceMs, () => stop("the answer stopped"));
    answer.on("data", (piece: Buffer) => {
      cancel();
      cancel = this.#clock.after(silenceMs, () => stop("the answer stopped"));
      byteCount += piece.length;
      if (byteCount > limit) stop("the answer is too long");
      else if (sink === undefined) pieces.push(piece);
      else sink(piece);
    });
    answer.once("end", () => {
      const text = Buffer.concat(pieces).toString();
      if (answer.complete) resolve({ status, headers: answer.headers, text });
      else reject(new Error("the answer was cut"));
    });
    answer.once("error", reject);
    answer.once("close", () => {
      cancel();
      reject(new Error("the answer was cut"));
    });
    return promise;
  }
}

async function send(request: ClientRequest, body: RequestBody | undefined): Promise<void> {
  const slices = body?.slices() ?? [];
  if (Symbol.iterator in slices) {
    // One call to the system takes all of them.
    request.cork();
    for (const slice of slices) request.write(slice);
    request.uncork();
  } else {
    for await (const slice of slices) {
      if (request.destroyed) return;
      if (!request.write(slice)) await drained(request);
    }
  }
  request.end();
}

function drained(request: ClientRequest): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = (): void => {
    request.off("drain", end).off("close", end);
    resolve();
  };
  request.once("drain", end).once("close", end);
  return promise;
}

/** Without the address and the request, which a system error carries. */
function plain(cause: unknown): Error {
  const { code, message } = cause as NodeJS.ErrnoException;
  return new Error(code ?? message);
}
