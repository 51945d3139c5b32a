// A foreign gRPC client with an address of its own: valid HTTP/2 by node:http2, no code of the product,
// bodies of any bytes.
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, createSecureContext } from "node:tls";

/** Made once: reading the public authorities again would cost more than the handshake. */
const secureContext = createSecureContext();
const OPEN_WITHIN_MS = 10_000;
const ANSWER_WITHIN_MS = 20_000;
/** Status of a call that ended without a gRPC status. */
export const NO_STATUS = -1;

/** A port of this machine, with TLS or without. */
export interface Door {
  readonly port: number;
  readonly isTls: boolean;
}

/** Result of a call. */
export interface FrontAnswer {
  /** gRPC status; NO_STATUS where none came. */
  readonly code: number;
  /** The refusal's reason, or what happened in place of an answer. */
  readonly reason: string;
  /** The reply's message. */
  readonly body: Buffer;
}

/** Options of a call. */
export interface FrontCallOptions {
  readonly token?: string;
  /** The body is packed with gzip. */
  readonly isPacked?: boolean;
  readonly withinMs?: number;
}

/** One connection. */
export class FrontCaller {
  readonly #session: ClientHttp2Session;

  private constructor(session: ClientHttp2Session) {
    this.#session = session;
  }

  /** Connects; rejects when the server refuses the connection. */
  static async connect(door: Door, from: string): Promise<FrontCaller> {
    const socket = socketTo(door, from);
    const session = connect("http://127.0.0.1", {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: 4 * 2 ** 20 },
    });
    session.on("error", () => undefined);
    const opened = Promise.withResolvers<void>();
    const late = setTimeout(() => opened.reject(new Error("the front lets nobody in")), OPEN_WITHIN_MS);
    // Until its settings have arrived, the server may still close a connection that it refuses.
    session.once("remoteSettings", () => opened.resolve());
    session.once("close", () => opened.reject(new Error("the front hung up")));
    try {
      await opened.promise;
    } catch (error) {
      session.destroy();
      socket.destroy();
      throw error;
    } finally {
      clearTimeout(late);
    }
    return new FrontCaller(session);
  }

  /** True when no further call can be made. */
  get isOver(): boolean {
    return this.#session.closed || this.#session.destroyed;
  }

  /** Resolves when the connection is gone. */
  get gone(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#session.destroyed) resolve();
      else this.#session.once("close", () => resolve());
    });
  }

  /** Makes a unary call; never rejects. */
  async call(path: string, message: Uint8Array, options: FrontCallOptions = {}): Promise<FrontAnswer> {
    const stream = this.open(path, options);
    void stream.write(framed(message, options.isPacked === true));
    stream.end();
    return stream.answer;
  }

  /** Begins a call whose request is written piece by piece. */
  open(path: string, options: FrontCallOptions = {}): OpenCall {
    return new OpenCall(this.#session, path, options);
  }

  close(): void {
    this.#session.destroy();
  }
}

/** A call under way. */
export class OpenCall {
  readonly answer: Promise<FrontAnswer>;
  #stream: ReturnType<ClientHttp2Session["request"]> | undefined;

  constructor(session: ClientHttp2Session, path: string, options: FrontCallOptions) {
    this.answer = new Promise((resolve) => {
      const none = (reason: string): void => resolve({ code: NO_STATUS, reason, body: Buffer.alloc(0) });
      try {
        this.#stream = session.request(headersOf(path, options));
      } catch (error) {
        none(String(error));
        return;
      }
      const stream = this.#stream;
      const pieces: Buffer[] = [];
      let code = NO_STATUS;
      let reason = "no status";
      const take = (headers: Record<string, unknown>): void => {
        if (headers["grpc-status"] === undefined) return;
        code = Number(headers["grpc-status"]);
        reason = String(headers["svc-reason"] ?? headers["grpc-message"] ?? "");
      };
      const late = setTimeout(() => {
        reason = "not answered in time";
        stream.close(constants.NGHTTP2_CANCEL);
      }, options.withinMs ?? ANSWER_WITHIN_MS);
      stream.on("response", take);
      stream.on("trailers", take);
      stream.on("data", (piece: Buffer) => pieces.push(piece));
      stream.on("error", (error) => {
        if (code === NO_STATUS && reason === "no status") reason = error.message;
      });
      stream.once("close", () => {
        clearTimeout(late);
        resolve({ code, reason, body: Buffer.concat(pieces).subarray(5) });
      });
    });
  }

  /** True when the server or this side has ended it. */
  get isOver(): boolean {
    return this.#stream === undefined || this.#stream.closed || this.#stream.destroyed;
  }

  /** Resolves when the bytes are on their way, or the call is over. */
  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      if (this.isOver) resolve();
      else this.#stream?.write(bytes, () => resolve());
    });
  }

  end(): void {
    if (!this.isOver) this.#stream?.end();
  }
}

/** A message with its prefix. */
export function framed(message: Uint8Array, isPacked = false, announcedBytes = message.length): Buffer {
  const head = Buffer.alloc(5);
  head[0] = isPacked ? 1 : 0;
  head.writeUInt32BE(announcedBytes, 1);
  return Buffer.concat([head, message]);
}

function socketTo({ port, isTls }: Door, localAddress: string): Socket {
  const place = { port, host: "127.0.0.1", localAddress, noDelay: true };
  const socket = isTls
    ? connectTls({ ...place, secureContext, ALPNProtocols: ["h2"], rejectUnauthorized: false })
    : connectTcp(place);
  socket.on("error", () => undefined);
  return socket;
}

function headersOf(path: string, { token, isPacked }: FrontCallOptions): Record<string, string> {
  return {
    ":method": "POST",
    ":scheme": "http",
    ":authority": "127.0.0.1",
    ":path": path,
    te: "trailers",
    "content-type": "application/grpc",
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(isPacked === true ? { "grpc-encoding": "gzip" } : {}),
  };
}
