// One request and its answer, watched: a client that sends or takes too slowly loses its place.
import type { ServerResponse } from "node:http";
import { constants, type Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import type { Clock } from "#base/clock.ts";
import type { HttpRequest, HttpResponse } from "#door/webdav/exchange.ts";
import { writeGathered } from "#door/webdav/outlet.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import { BodyReader } from "./body-reader.ts";
import { DOOR_LINGER_BYTES, DOOR_LINGER_MS, DOOR_PACE_BYTES, DOOR_PACE_MS } from "./door-limits.ts";
import type { DoorRequest } from "./request-target.ts";

/** How many times a pace is looked at while it lasts. */
const LOOKS = 6;

/** Bytes of a whole body that are handed on at once. */
const LAST_PART_BYTES = 65_536;

/** An answer of HTTP/1.1 or HTTP/2. */
export type DoorResponse = ServerResponse | Http2ServerResponse;

/** Bytes that went through. */
export interface Traffic {
  in: number;
  out: number;
}

/** A request and an answer as WebDAV's methods see them, each with a pace that the client must keep. */
export class PacedExchange implements HttpRequest, HttpResponse {
  readonly #request: DoorRequest;
  readonly #response: ServerResponse;
  readonly #body: BodyReader;
  readonly #clock: Clock;
  readonly #traffic: Traffic;
  /** Made for those who ask for it. */
  #gone: AbortController | undefined;
  #isGone = false;
  #endsConnection = false;
  readonly #ends: (() => void)[] = [];
  /** Begins with the first wait: most answers to small requests know none. */
  #endWatch: (() => void) | undefined;
  /** The address without scheme and host. */
  readonly url: string;
  /** What the door waits for at the moment. */
  #awaits: "body" | "reader" | undefined;
  #looksWaited = 0;
  #moved = 0;

  constructor(
    request: DoorRequest,
    response: DoorResponse,
    parts: { readonly url: string; readonly clock: Clock; readonly traffic: Traffic },
  ) {
    this.#request = request;
    // Both kinds have the methods that are used here, under types that do not fit one another.
    this.#response = response as ServerResponse;
    this.#body = new BodyReader(request, (bytes) => {
      // What somebody sends who should read says nothing of the reading.
      if (this.#awaits !== "reader") this.#moved += bytes;
      this.#traffic.in += bytes;
    });
    this.#clock = parts.clock;
    this.#traffic = parts.traffic;
    this.url = parts.url;
    response.on("close", () => {
      this.#isGone = true;
      this.#endWatch?.();
      for (const end of this.#ends) end();
      this.#gone?.abort();
    });
    response.on("error", () => undefined);
  }

  /** Aborted with the end of the answer, complete or not. */
  get gone(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.#isGone) this.#gone.abort();
    return this.#gone.signal;
  }

  /** True once the answer has ended, complete or not. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** True where the answer tells the client that it is the connection's last. */
  get endsConnection(): boolean {
    return this.#endsConnection;
  }

  /** Calls back at the end of the answer, complete or not; at once where it has ended. */
  whenGone(end: () => void): void {
    if (this.#isGone) end();
    else this.#ends.push(end);
  }

  get method(): string | undefined {
    return this.#request.method;
  }

  get headers(): HttpRequest["headers"] {
    return this.#request.headers;
  }

  get hasUntoldBody(): boolean {
    const stream = "stream" in this.#request ? this.#request.stream : undefined;
    return this.#request.headers["content-length"] === undefined && stream?.endAfterHeaders === false;
  }

  /** No generator: a part of a large body would pass through it at several times the cost. */
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    return {
      next: () => {
        const value = this.#body.taken();
        return value === undefined ? this.#nextPart() : Promise.resolve({ value, done: false });
      },
    };
  }

  get statusCode(): number {
    return this.#response.statusCode;
  }

  set statusCode(status: number) {
    this.#response.statusCode = status;
  }

  get headersSent(): boolean {
    return this.#response.headersSent;
  }

  get destroyed(): boolean {
    return this.#response.destroyed || this.#isGone;
  }

  setHeader(name: string, value: string | number | readonly string[]): void {
    if (name === "connection") {
      this.#endsConnection = value === "close";
      // HTTP/2 has no such header, and Node warns of it.
      if (this.#isHttp2) return;
    }
    this.#response.setHeader(name, value);
  }

  removeHeader(name: string): void {
    this.#response.removeHeader(name);
  }

  writeContinue(): void {
    this.#response.writeContinue();
  }

  write(chunk: string | Uint8Array): boolean {
    // Node would measure a text more than once before it turns it into bytes.
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    return this.#wrote(bytes.length, this.#response.write(bytes));
  }

  writeAll(parts: readonly Uint8Array[]): boolean {
    let length = 0;
    for (const part of parts) length += part.length;
    return this.#wrote(length, writeGathered(this.#response, parts));
  }

  end(chunk?: string | Uint8Array): void {
    this.#traffic.out += chunk === undefined ? 0 : lengthOf(chunk);
    if (this.#hasUnreadBody) {
      if (this.#awaitsLeave) this.#closeAfter();
      else return this.#linger(chunk);
    }
    if (chunk === undefined) this.#finish();
    else this.#sendLast(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  }

  destroy(): void {
    this.#response.destroy();
  }

  on(event: "close", listener: () => void): void {
    this.#response.on(event, listener);
  }

  once(event: "drain" | "close", listener: () => void): void {
    this.#response.once(event, listener);
  }

  off(event: "drain" | "close", listener: () => void): void {
    this.#response.off(event, listener);
  }

  get #isHttp2(): boolean {
    return this.#request.httpVersionMajor === 2;
  }

  /** True for a client that sends its body only when it is told to, and was not. */
  get #awaitsLeave(): boolean {
    return this.#request.headers.expect !== undefined && !this.#body.isBegun;
  }

  /** True where the client may still be sending. In HTTP/1.1 a body has a length or comes in chunks. */
  get #hasUnreadBody(): boolean {
    const { headers } = this.#request;
    const isTold = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
    return (isTold || this.hasUntoldBody) && this.#body.isUnfinished;
  }

  #wrote(length: number, hasRoom: boolean): boolean {
    this.#traffic.out += length;
    if (!hasRoom) {
      this.#await("reader");
      this.#response.once("drain", () => {
        this.#moved += length;
        this.#awaits = undefined;
      });
    }
    return hasRoom;
  }

  async #nextPart(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#await("body");
    try {
      const value = await this.#body.next();
      return value === undefined ? { value, done: true } : { value, done: false };
    } catch (error) {
      if (error instanceof DavRefusal) throw error;
      throw new DavRefusal(400, "the connection ended before the body did");
    } finally {
      this.#awaits = undefined;
    }
  }

  /**
   * Answers a request whose body is still on its way. Some of it is dropped first: a connection that closes with
   * unread bytes takes the answer with it.
   */
  #linger(chunk: string | Uint8Array | undefined): void {
    const response = this.#response;
    this.#closeAfter();
    let dropped = 0;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      cancel();
      if ("stream" in this.#request) closeOnceAnswered(this.#request.stream);
      this.#finish();
    };
    const cancel = this.#clock.after(DOOR_LINGER_MS, over);
    response.once("close", over);
    this.#request.once("end", over);
    this.#request.once("close", over);
    if (chunk === undefined) response.flushHeaders();
    else response.write(chunk);
    this.#body.drop((bytes) => {
      dropped += bytes;
      if (dropped > DOOR_LINGER_BYTES) over();
    });
  }

  /** Sends a whole body in parts, so that a slow reader of a large one is seen to move. */
  #sendLast(bytes: Uint8Array): void {
    for (let at = 0; ; at += LAST_PART_BYTES) {
      const part = bytes.subarray(at, at + LAST_PART_BYTES);
      const rest = bytes.subarray(at + LAST_PART_BYTES);
      if (rest.length === 0) return this.#finish(part);
      if (this.#response.write(part)) continue;
      this.#await("reader");
      this.#response.once("drain", () => {
        this.#moved += part.length;
        this.#sendLast(rest);
      });
      return;
    }
  }

  #finish(last?: Uint8Array): void {
    this.#response.end(last);
    // What the kernel has taken by now waits for nobody. HTTP/2 has windows of its own.
    if (this.#isHttp2 || this.#response.writableLength > 0) this.#await("reader");
  }

  #await(what: "body" | "reader"): void {
    this.#awaits = what;
    if (!this.#isGone) this.#endWatch ??= this.#clock.every(DOOR_PACE_MS / LOOKS, () => this.#look());
  }

  #closeAfter(): void {
    if (!this.headersSent) this.setHeader("connection", "close");
  }

  #look(): void {
    if (this.#awaits === undefined) return;
    this.#looksWaited++;
    if (this.#looksWaited < LOOKS) return;
    const isTooSlow = this.#moved < DOOR_PACE_BYTES;
    this.#looksWaited = 0;
    this.#moved = 0;
    if (!isTooSlow) return;
    if (this.#awaits === "body") this.#body.refuse(new DavRefusal(408, "the body came too slowly"));
    else this.#response.destroy();
  }
}

/**
 * A stream whose body never ends would be kept as long as its connection, so it is reset behind the whole answer
 * (RFC 9113, section 8.1). Node 26.10 ends the process where a stream is closed while its end is still to be sent.
 */
function closeOnceAnswered(stream: ServerHttp2Stream): void {
  const close = (): void => void setImmediate(() => stream.close(constants.NGHTTP2_NO_ERROR));
  if (stream.writableEnded) close();
  else stream.once("wantTrailers", close);
}

function lengthOf(chunk: string | Uint8Array): number {
  return typeof chunk === "string" ? Buffer.byteLength(chunk) : chunk.length;
}
