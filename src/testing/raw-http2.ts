// A hostile HTTP/2 client that writes frames by hand on a bare socket, so that tests can break every rule.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls, createSecureContext } from "node:tls";

/** Types of HTTP/2 frames. */
export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PRIORITY: 2,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Flags of HTTP/2 frames. */
export const FrameFlag = { ACK: 1, END_STREAM: 1, END_HEADERS: 4 } as const;

/** A received frame. */
export interface RawFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

const FRAME_HEAD_BYTES = 9;
/** Made once: reading the public authorities anew would cost more than the handshake. */
const secureContext = createSecureContext();

/** One frame as bytes. */
export const rawFrame = (type: number, flags: number, streamId: number, payload: Uint8Array): Buffer => {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
};

const hpackText = (text: string): Buffer => {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let left = bytes.length - 127;
  for (; left >= 128; left = Math.floor(left / 128)) length.push((left % 128) | 128);
  length.push(left);
  return Buffer.concat([Buffer.from(length), bytes]);
};

/** Headers in HPACK, each a literal that touches no table. */
export const hpack = (headers: readonly (readonly [string, string])[]): Buffer =>
  Buffer.concat(
    headers.map(([name, value]) => Buffer.concat([Buffer.from([0]), hpackText(name), hpackText(value)])),
  );

/** The headers of a gRPC call. */
export const grpcHeaders = (path: string, more: readonly (readonly [string, string])[] = []): Buffer =>
  hpack([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "test"],
    ["te", "trailers"],
    ["content-type", "application/grpc"],
    ...more,
  ]);

/** A connection that sends nothing by itself: no settings, no windows, no pings. */
export class RawHttp2 {
  readonly frames: RawFrame[] = [];
  #endedCount = 0;
  readonly #socket: Socket;
  #pending: Buffer = Buffer.alloc(0);
  #isClosed = false;
  #answersPings = false;
  readonly #closed: Promise<unknown>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.#closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#isClosed = true;
        resolve(undefined);
      });
    });
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
  }

  /**
   * Connects to a port of this machine, optionally from a given address and over TLS. With `greet` it sends
   * the preface and empty settings, as every client does.
   */
  static async connect(
    port: number,
    greet = true,
    localAddress = "127.0.0.1",
    isTls = false,
  ): Promise<RawHttp2> {
    const place = { port, host: "127.0.0.1", localAddress, noDelay: true };
    // An attacker does not check the server's identity.
    const socket = isTls
      ? connectTls({ ...place, secureContext, ALPNProtocols: ["h2"], rejectUnauthorized: false })
      : connect(place);
    try {
      await once(socket, isTls ? "secureConnect" : "connect");
    } catch (error) {
      socket.destroy();
      throw error;
    }
    const raw = new RawHttp2(socket);
    if (greet) {
      await raw.write(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
      await raw.send(FrameType.SETTINGS, 0, 0, Buffer.alloc(0));
      await raw.send(FrameType.SETTINGS, FrameFlag.ACK, 0, Buffer.alloc(0));
    }
    return raw;
  }

  /** Streams that the server has ended, and not reset. */
  get endedCount(): number {
    return this.#endedCount;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when the server has closed the connection. */
  get closed(): Promise<unknown> {
    return this.#closed;
  }

  /** Stops reading from the socket: the server's writes fill the kernel and stay there. */
  stopReading(): void {
    this.#socket.pause();
  }

  /** Reads some of what has come, at least so many bytes, forgets its frames, and stops again. */
  async readSome(bytes: number): Promise<void> {
    const end = this.#socket.bytesRead + bytes;
    this.#socket.resume();
    while (this.#socket.bytesRead < end && !this.#isClosed) await this.#next("data");
    this.#socket.pause();
    this.frames.length = 0;
  }

  /** Answers pings from now on, like an idle client that lives. */
  answerPings(): void {
    this.#answersPings = true;
  }

  /** Writes bytes unchanged; resolves when the kernel has them, or the connection is gone. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#isClosed) return;
    if (!this.#socket.write(bytes)) await this.#next("drain");
  }

  send(type: number, flags: number, streamId: number, payload: Uint8Array): Promise<void> {
    return this.write(rawFrame(type, flags, streamId, payload));
  }

  /** Waits for the first frame that fits; undefined when the connection closed without one. */
  async frame(fits: (frame: RawFrame) => boolean): Promise<RawFrame | undefined> {
    for (;;) {
      const found = this.frames.find(fits);
      if (found !== undefined || this.#isClosed) return found;
      await this.#next("data");
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  /** The next event of a kind, or the end: many tests wait for the server to hang up. */
  async #next(event: string): Promise<void> {
    await Promise.race([once(this.#socket, event).catch(() => undefined), this.#closed]);
  }

  #take(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    for (;;) {
      if (this.#pending.length < FRAME_HEAD_BYTES) return;
      const end = FRAME_HEAD_BYTES + this.#pending.readUIntBE(0, 3);
      if (this.#pending.length < end) return;
      const frame = {
        type: this.#pending[3] as number,
        flags: this.#pending[4] as number,
        streamId: this.#pending.readUInt32BE(5) % 2 ** 31,
        payload: this.#pending.subarray(FRAME_HEAD_BYTES, end),
      };
      if (this.#answersPings && frame.type === FrameType.PING && (frame.flags & FrameFlag.ACK) === 0)
        void this.send(FrameType.PING, FrameFlag.ACK, 0, frame.payload);
      else this.frames.push(frame);
      const mayEnd = frame.type === FrameType.DATA || frame.type === FrameType.HEADERS;
      if (mayEnd && (frame.flags & FrameFlag.END_STREAM) !== 0) this.#endedCount++;
      this.#pending = this.#pending.subarray(end);
    }
  }
}
