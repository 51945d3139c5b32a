// A cheap connection for gRPC calls: frames by hand, one write per turn of the event loop, and of the answers
// only their ends.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { FrameFlag, FrameType, rawFrame } from "#testing/raw-http2.ts";
import { decodeMessage } from "#wire/framing/status.ts";
import { type ReplyHead, readReplyHead } from "./hpack-reader.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const HEAD_BYTES = 9;
/** Every server takes frames of this size. */
const FRAME_MAX_BYTES = 16_384;
const WINDOW_MAX_BYTES = 2 ** 31 - 1;
const WINDOW_FIRST_BYTES = 65_535;
const WINDOW_STEP_BYTES = 2 ** 24;
const SETTING_TABLE_BYTES = 1;
const SETTING_WINDOW_BYTES = 4;
const SWEEP_MS = 1_000;
/** The server's own bound of a frame, and one more for its header. */
const PENDING_MAX_BYTES = 2 ** 24;
const CANCEL = 8;
const NOTHING = Buffer.alloc(0);
const FLAG_PADDED = 8;
const FLAG_PRIORITY = 32;

/** Result of a call. */
export interface Outcome {
  readonly httpStatus: number;
  /** -1 when the stream ended without one. */
  readonly code: number;
  /** The status message; all headers of the answer are kept for it. */
  readonly message: () => string;
}

interface Waiting {
  readonly head: ReplyHead;
  readonly sentMs: number;
  readonly resolve: (outcome: Outcome) => void;
}

/** One connection; calls end with an outcome in all cases. */
export class CallLine {
  readonly #socket: Socket;
  readonly #answerWithinMs: number;
  readonly #calls = new Map<number, Waiting>();
  readonly #sweep: NodeJS.Timeout;
  #out: Buffer[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #nextId = 1;
  #window = WINDOW_FIRST_BYTES;
  #wider = Promise.withResolvers<void>();
  #takenBytes = 0;
  #isOver = false;

  private constructor(socket: Socket, answerWithinMs: number) {
    this.#socket = socket;
    this.#answerWithinMs = answerWithinMs;
    this.#sweep = setInterval(() => this.#giveUpLate(), SWEEP_MS);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => undefined);
    socket.once("close", () => this.#end("the connection was closed"));
    const settings = Buffer.alloc(12);
    settings.writeUInt16BE(SETTING_TABLE_BYTES, 0);
    settings.writeUInt16BE(SETTING_WINDOW_BYTES, 6);
    settings.writeUInt32BE(WINDOW_MAX_BYTES, 8);
    this.#write(PREFACE);
    this.#write(rawFrame(FrameType.SETTINGS, 0, 0, settings));
    this.#widen(WINDOW_MAX_BYTES - WINDOW_FIRST_BYTES);
  }

  /** Connects to host:port; a call without an answer in time counts as unanswered. */
  static async connect(address: string, answerWithinMs: number): Promise<CallLine> {
    const [host = "", port = ""] = address.split(":");
    const socket = connect({ host, port: Number(port), noDelay: true });
    await once(socket, "connect");
    return new CallLine(socket, answerWithinMs);
  }

  /** True once no further call can be made on it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Makes a call from its header block and its messages; each piece becomes a frame. */
  async call(headers: Buffer, pieces: readonly Buffer[]): Promise<Outcome> {
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    while (this.#window < bytes && !this.#isOver) await this.#wider.promise;
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const head: ReplyHead = { httpStatus: 0, code: -1, message: undefined };
    if (this.#isOver) return { ...head, message: () => "the connection was closed before" };
    const id = this.#nextId;
    this.#nextId += 2;
    this.#window -= bytes;
    this.#calls.set(id, { head, sentMs: performance.now(), resolve });
    this.#write(callFrames(id, headers, pieces, bytes));
    return promise;
  }

  close(): void {
    this.#socket.destroy();
    this.#end("the rig closed the connection");
  }

  /** All frames of one turn leave together. */
  #write(bytes: Buffer): void {
    if (this.#out.push(bytes) > 1) return;
    setImmediate(() => {
      const all = this.#out;
      this.#out = [];
      if (!this.#socket.destroyed) this.#socket.write(Buffer.concat(all));
    });
  }

  #take(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    try {
      while (bytes.length - at >= HEAD_BYTES) {
        const from = at + HEAD_BYTES;
        const end = from + bytes.readUIntBE(at, 3);
        if (end > bytes.length) break;
        const [type = 0, flags = 0] = [bytes[at + 3], bytes[at + 4]];
        this.#frame(type, flags, bytes.readUInt32BE(at + 5), bytes.subarray(from, end));
        at = end;
      }
      if (bytes.length - at > PENDING_MAX_BYTES) throw new Error("a frame that does not end");
      this.#rest = bytes.subarray(at);
    } catch (error) {
      this.#end(`what came cannot be read: ${String(error)}`);
      this.#socket.destroy();
    }
  }

  #frame(type: number, flags: number, id: number, payload: Buffer): void {
    switch (type) {
      case FrameType.DATA:
        this.#takenBytes += payload.length;
        if (this.#takenBytes > WINDOW_STEP_BYTES) {
          this.#widen(this.#takenBytes);
          this.#takenBytes = 0;
        }
        if ((flags & FrameFlag.END_STREAM) !== 0) this.#ended(id, undefined);
        return;
      case FrameType.HEADERS:
        return this.#headers(flags, id, payload);
      case FrameType.RST_STREAM:
        return this.#ended(id, `the stream was reset with ${payload.readUInt32BE(0)}`);
      case FrameType.SETTINGS:
      case FrameType.PING:
        if ((flags & FrameFlag.ACK) !== 0) return;
        return this.#write(rawFrame(type, FrameFlag.ACK, 0, type === FrameType.PING ? payload : NOTHING));
      case FrameType.WINDOW_UPDATE:
        if (id !== 0) return;
        this.#window += payload.readUInt32BE(0);
        this.#wider.resolve();
        this.#wider = Promise.withResolvers();
        return;
      case FrameType.GOAWAY:
        this.#isOver = true;
        return;
      case FrameType.CONTINUATION:
        throw new Error("headers above 16 KiB");
    }
  }

  #headers(flags: number, id: number, payload: Buffer): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    if ((flags & (FLAG_PADDED | FLAG_PRIORITY)) !== 0) throw new Error("headers with padding or priority");
    readReplyHead(payload, call.head);
    if ((flags & FrameFlag.END_STREAM) !== 0) this.#ended(id, undefined);
  }

  #ended(id: number, why: string | undefined): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    this.#calls.delete(id);
    const { httpStatus, code, message } = call.head;
    const said = (): string =>
      message === undefined ? (why ?? "the stream was closed") : decodeMessage(message());
    call.resolve({ httpStatus, code, message: said });
  }

  #end(why: string): void {
    this.#isOver = true;
    clearInterval(this.#sweep);
    this.#wider.resolve();
    for (const id of this.#calls.keys()) this.#ended(id, why);
  }

  #giveUpLate(): void {
    const before = performance.now() - this.#answerWithinMs;
    for (const [id, { sentMs }] of this.#calls) {
      if (sentMs > before) return;
      const code = Buffer.alloc(4);
      code.writeUInt32BE(CANCEL);
      this.#write(rawFrame(FrameType.RST_STREAM, 0, id, code));
      this.#ended(id, `nothing within ${this.#answerWithinMs} ms`);
    }
  }

  #widen(bytes: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(bytes);
    this.#write(rawFrame(FrameType.WINDOW_UPDATE, 0, 0, payload));
  }
}

/** Returns header and data frames; the last frame ends the request. */
function callFrames(id: number, headers: Buffer, pieces: readonly Buffer[], bytes: number): Buffer {
  let count = 1;
  for (const { length } of pieces) count += Math.max(1, Math.ceil(length / FRAME_MAX_BYTES));
  if (pieces.length === 0) count++;
  const all = Buffer.allocUnsafe(count * HEAD_BYTES + headers.length + bytes);
  let at = 0;
  const put = (type: number, flags: number, payload: Buffer): void => {
    all.writeUIntBE(payload.length, at, 3);
    all[at + 3] = type;
    all[at + 4] = flags;
    all.writeUInt32BE(id, at + 5);
    payload.copy(all, at + HEAD_BYTES);
    at += HEAD_BYTES + payload.length;
  };
  put(FrameType.HEADERS, FrameFlag.END_HEADERS, headers);
  for (const [index, piece] of (pieces.length === 0 ? [NOTHING] : pieces).entries()) {
    const isLast = index >= pieces.length - 1;
    for (let from = 0; ; from += FRAME_MAX_BYTES) {
      const end = from + FRAME_MAX_BYTES;
      const ends = isLast && end >= piece.length;
      put(FrameType.DATA, ends ? FrameFlag.END_STREAM : 0, piece.subarray(from, end));
      if (end >= piece.length) break;
    }
  }
  return all;
}
