// Stands for node:http2: sessions and streams hand over header lists and buffers, without framing and TLS.
import { EventEmitter } from "node:events";
import { constants } from "node:http2";
import { type Connection, type End, network } from "#prove/simulation/network.ts";
import { simulation } from "#prove/simulation/scheduler.ts";
import type { Socket } from "./net.ts";

export { constants } from "node:http2";

type StreamFrame = Extract<Frame, { readonly id: number }>;
type Frame =
  | { readonly is: "settings" | "ping" | "pong" | "goaway" | "fin" }
  | {
      readonly is: "open" | "headers" | "trailers";
      readonly id: number;
      readonly raw: readonly string[];
      readonly isEnd: boolean;
    }
  | { readonly is: "data"; readonly id: number; readonly bytes: Buffer }
  | { readonly is: "end"; readonly id: number }
  | { readonly is: "reset"; readonly id: number; readonly code: number };

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

function flat(headers: readonly string[] | Headers): string[] {
  if (Array.isArray(headers)) return [...(headers as readonly string[])];
  const raw: string[] = [];
  for (const [name, value] of Object.entries(headers as Headers)) {
    if (typeof value === "string") raw.push(name, value);
    else for (const one of value ?? []) raw.push(name, one);
  }
  return raw;
}

const asObject = (raw: readonly string[]): Record<string, string> => {
  const object: Record<string, string> = {};
  for (let at = 0; at + 1 < raw.length; at += 2) object[raw[at] as string] = raw[at + 1] as string;
  return object;
};

/** One side of a call. */
class Stream extends EventEmitter {
  readonly id: number;
  readonly session: Session;
  headersSent = false;
  destroyed = false;
  closed = false;
  writableEnded = false;
  writableFinished = false;
  rstCode: number | undefined;
  readonly writableLength = 0;
  #isPaused = false;
  #waiting: (() => void)[] = [];
  #wantsTrailers = false;
  #hasEnded = false;

  constructor(session: Session, id: number) {
    super();
    this.session = session;
    this.id = id;
  }

  // Methods by which node:stream recognises a stream.
  pipe(): never {
    throw new Error("nobody pipes here");
  }

  write(bytes: Uint8Array, callback?: (error?: Error | null) => void): boolean {
    if (this.destroyed || this.writableEnded) {
      simulation().immediate(() => callback?.(new Error("the stream is over")));
      return false;
    }
    // The buffers are the product's again as soon as they are "written".
    this.session.send({ is: "data", id: this.id, bytes: Buffer.from(bytes) });
    simulation().immediate(() => callback?.(null));
    return true;
  }

  end(bytes?: Uint8Array): void {
    if (this.destroyed || this.writableEnded) return;
    if (bytes !== undefined) this.write(bytes);
    this.writableEnded = true;
    if (this.#wantsTrailers) {
      simulation().immediate(() => {
        if (!this.destroyed) this.emit("wantTrailers");
      });
      return;
    }
    this.session.send({ is: "end", id: this.id });
    this.#finished();
  }

  respond(
    headers: readonly string[] | Headers,
    options: { waitForTrailers?: boolean; endStream?: boolean },
  ): void {
    this.headersSent = true;
    this.#wantsTrailers = options.waitForTrailers === true;
    const isEnd = options.endStream === true;
    this.session.send({ is: "headers", id: this.id, raw: flat(headers), isEnd });
    if (isEnd) this.#finished();
  }

  sendTrailers(headers: Headers): void {
    this.session.send({ is: "trailers", id: this.id, raw: flat(headers), isEnd: true });
    this.#finished();
  }

  pause(): this {
    this.#isPaused = true;
    return this;
  }

  resume(): this {
    this.#isPaused = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) this.#inOrder(each);
    return this;
  }

  close(code: number = constants.NGHTTP2_NO_ERROR): void {
    if (this.closed || this.destroyed) return;
    this.session.send({ is: "reset", id: this.id, code });
    this.gone(code);
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this;
    if (!this.closed) this.close(error === undefined ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_CANCEL);
    return this;
  }

  /** Delivers events in order, and none while paused. */
  #inOrder(tell: () => void): void {
    if (this.#isPaused || this.#waiting.length > 0) this.#waiting.push(tell);
    else tell();
  }

  take(frame: StreamFrame): void {
    if (frame.is === "reset") {
      this.emit("aborted");
      this.gone(frame.code);
      return;
    }
    this.#inOrder(() => {
      if (this.destroyed) return;
      if (frame.is === "data") this.emit("data", frame.bytes);
      else if (frame.is === "end") this.#ended();
      else {
        const flags = frame.isEnd ? constants.NGHTTP2_FLAG_END_STREAM : 0;
        const event = frame.is === "headers" ? "response" : "trailers";
        this.emit(event, asObject(frame.raw), flags, frame.raw);
        if (frame.isEnd) this.#ended();
      }
    });
  }

  #ended(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.emit("end");
    this.#closeWhenOver();
  }

  #finished(): void {
    this.writableFinished = true;
    this.writableEnded = true;
    this.#closeWhenOver();
  }

  #closeWhenOver(): void {
    if (!this.#hasEnded || !this.writableFinished) return;
    simulation().immediate(() => this.gone(constants.NGHTTP2_NO_ERROR));
  }

  gone(code: number): void {
    if (this.destroyed) return;
    this.rstCode = code;
    this.closed = true;
    this.destroyed = true;
    this.session.streams.delete(this.id);
    this.emit("close");
    this.session.closeWhenEmpty();
  }
}

/** One end of a connection. */
class Session extends EventEmitter {
  readonly streams = new Map<number, Stream>();
  closed = false;
  destroyed = false;
  #pings: ((error: Error | null) => void)[] = [];
  #connection: Connection | undefined;
  readonly #isServer: boolean;

  constructor(isServer: boolean) {
    super();
    this.#isServer = isServer;
  }

  attach(connection: Connection): void {
    this.#connection = connection;
    this.send({ is: "settings" });
  }

  send(frame: Frame): void {
    const connection = this.#connection;
    if (connection === undefined || this.destroyed) return;
    (this.#isServer ? connection.toClient : connection.toServer).send(frame);
  }

  receive(batch: readonly unknown[]): void {
    for (const frame of batch as readonly Frame[]) {
      if (this.destroyed) return;
      this.#take(frame);
    }
  }

  #take(frame: Frame): void {
    if (frame.is === "settings") this.emit("remoteSettings");
    else if (frame.is === "ping") this.send({ is: "pong" });
    else if (frame.is === "pong") this.#pings.shift()?.(null);
    else if (frame.is === "goaway") this.#goaway();
    else if (frame.is === "fin") this.destroy();
    else if (frame.is === "open") this.#open(frame.id, frame.raw);
    else if ("id" in frame) this.streams.get(frame.id)?.take(frame);
  }

  #goaway(): void {
    this.closed = true;
    this.emit("goaway");
    this.closeWhenEmpty();
  }

  #open(id: number, raw: readonly string[]): void {
    if (this.closed) {
      this.send({ is: "reset", id, code: constants.NGHTTP2_REFUSED_STREAM });
      return;
    }
    const stream = new Stream(this, id);
    this.streams.set(id, stream);
    this.emit("stream", stream, asObject(raw), 0, raw);
  }

  ping(callback: (error: Error | null) => void): boolean {
    this.#pings.push(callback);
    this.send({ is: "ping" });
    return true;
  }

  setLocalWindowSize(): void {}

  settings(): void {}

  /** Takes no more streams and ends with the last one. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.#isServer) this.send({ is: "goaway" });
    this.closeWhenEmpty();
  }

  closeWhenEmpty(): void {
    if (!this.closed || this.destroyed || this.streams.size > 0) return;
    simulation().immediate(() => {
      if (this.destroyed) return;
      // After everything that was sent, which still arrives.
      this.send({ is: "fin" });
      this.#end(constants.NGHTTP2_NO_ERROR);
      this.over();
    });
  }

  /** It has ended in good order on this side. */
  protected over(): void {}

  destroy(_error?: Error, code: number = constants.NGHTTP2_NO_ERROR): void {
    if (this.destroyed) return;
    this.#end(code);
    this.#connection?.break();
  }

  lost(): void {
    if (!this.destroyed) this.#end(constants.NGHTTP2_INTERNAL_ERROR);
  }

  #end(code: number): void {
    this.destroyed = true;
    this.closed = true;
    for (const stream of this.streams.values()) {
      stream.emit("aborted");
      stream.gone(code);
    }
    for (const answer of this.#pings.splice(0)) answer(new Error("the session is over"));
    this.emit("close");
  }
}

class ClientSession extends Session implements End {
  readonly socket = { bytesRead: 0 };
  #lastId = -1;

  constructor() {
    super(false);
  }

  override receive(batch: readonly unknown[]): void {
    this.socket.bytesRead += batch.length;
    super.receive(batch);
  }

  request(raw: readonly string[]): Stream {
    if (this.destroyed || this.closed) throw new Error("the session is over");
    this.#lastId += 2;
    const stream = new Stream(this, this.#lastId);
    this.streams.set(stream.id, stream);
    this.send({ is: "open", id: stream.id, raw: [...raw], isEnd: false });
    return stream;
  }
}

/** Connects over the simulated network. */
export function connect(url: string): ClientSession {
  const session = new ClientSession();
  network().connect(url.replace(/^https?:\/\//, ""), session, {
    up: (connection) => {
      if (session.destroyed) connection.break();
      else session.attach(connection);
    },
    failed: (error) => {
      if (!session.destroyed) session.emit("error", error);
    },
  });
  return session;
}

class ServerSession extends Session {
  readonly socket: Socket;

  constructor(socket: Socket) {
    super(true);
    this.socket = socket;
    socket.onBatch = (batch) => {
      this.receive(batch);
      this.#haunt(batch as readonly Frame[]);
    };
    socket.once("close", () => this.lost());
  }

  protected override over(): void {
    this.socket.lost();
  }

  /** Repeats some calls of the control plane late, as after a slow link. */
  #haunt(batch: readonly Frame[]): void {
    const { random, ghostChance } = network();
    if (ghostChance === 0) return;
    for (const opened of batch) {
      if (opened.is !== "open") continue;
      const call = batch.filter((frame) => "id" in frame && frame.id === opened.id);
      const isWhole = call.some((frame) => frame.is === "end");
      if (!isWhole || !CONTROL_CALL.test(asObject(opened.raw)[":path"] ?? "")) continue;
      if (!random.chance(ghostChance)) continue;
      const id = ghosts++;
      simulation().after(random.next() * GHOST_WITHIN_MS, () => {
        simulation().trace("ghost", asObject(opened.raw)[":path"] ?? "");
        this.receive(call.map((frame) => ({ ...frame, id })));
      });
    }
  }
}

/** Ids that no client gives. */
const FIRST_GHOST = 1_000_000_000;
const GHOST_WITHIN_MS = 60_000;
const CONTROL_CALL = /\.MetaServer\/(?:RootShare|RootUnshare|Heartbeat|RegisterFileServer|ClaimRoot)$/;
let ghosts = FIRST_GHOST;

class Server extends EventEmitter {
  constructor() {
    super();
    this.on("connection", (socket: Socket) => {
      const session = new ServerSession(socket);
      this.emit("session", session);
      session.attach(socket.connection);
    });
  }
}

/** A server that is handed its sockets. */
export function createServer(): Server {
  return new Server();
}

/** TLS is outside of the simulation. */
export function createSecureServer(): never {
  throw new Error("there is no TLS in the simulation");
}
