// Connects HTTP/2 streams to their calls, with listeners that all streams share.
import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";

/** Stream events of a client's call. */
export interface ClientStreamListener {
  /** `isAll` is true when nothing follows the headers. */
  onResponse(
    stream: ClientHttp2Stream,
    headers: IncomingHttpHeaders,
    raw: readonly string[],
    isAll: boolean,
  ): void;
  onData(chunk: Buffer): void;
  onTrailers(stream: ClientHttp2Stream, raw: readonly string[]): void;
  onEnd(stream: ClientHttp2Stream): void;
  onClose(stream: ClientHttp2Stream): void;
}

/** Stream events of a server's call. */
export interface ServerStreamListener {
  /** True when the stream may be paused on behalf of the handler. */
  readonly mayPause: boolean;
  onData(chunk: Buffer): void;
  onEnd(): void;
  onWantTrailers(): void;
  onClose(): void;
}

// A property instead of closures: a call then costs no function objects.
const CALL: unique symbol = Symbol("call");
type ClientStream = ClientHttp2Stream & { [CALL]?: ClientStreamListener | undefined };
type ServerStream = ServerHttp2Stream & { [CALL]?: ServerStreamListener | undefined };

function clientResponse(
  this: ClientStream,
  headers: IncomingHttpHeaders,
  flags: number,
  raw: string[],
): void {
  this[CALL]?.onResponse(this, headers, raw, (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0);
}
function clientTrailers(this: ClientStream, _headers: unknown, _flags: number, raw: string[]): void {
  this[CALL]?.onTrailers(this, raw);
}
function clientEnd(this: ClientStream): void {
  this[CALL]?.onEnd(this);
}
function clientClose(this: ClientStream): void {
  const call = this[CALL];
  // node:http2 keeps closed streams through a collection or two: they must not keep their calls.
  this[CALL] = undefined;
  call?.onClose(this);
}
function anyData(this: ClientStream | ServerStream, chunk: Buffer): void {
  this[CALL]?.onData(chunk);
}
function serverEnd(this: ServerStream): void {
  this[CALL]?.onEnd();
}
function serverClose(this: ServerStream): void {
  const call = this[CALL];
  this[CALL] = undefined;
  call?.onClose();
}
function serverWantTrailers(this: ServerStream): void {
  this[CALL]?.onWantTrailers();
}

/** Every failure of a stream also closes it, and calls listen for the close. */
export function ignoreError(): void {}

/** Delivers the stream's events to the client's call. */
export const listenAsClient = (stream: ClientStream, call: ClientStreamListener): void => {
  stream[CALL] = call;
  stream.on("error", ignoreError);
  stream.on("response", clientResponse);
  stream.on("data", anyData);
  stream.on("trailers", clientTrailers);
  stream.on("end", clientEnd);
  stream.on("close", clientClose);
};

/** Delivers the stream's events to the server's call; errors of the stream are already ignored. */
export const listenAsServer = (stream: ServerStream, call: ServerStreamListener): void => {
  stream[CALL] = call;
  stream.on("data", anyData);
  stream.on("end", serverEnd);
  stream.on("wantTrailers", serverWantTrailers);
  // A paused stream may be aborted long before it closes.
  if (call.mayPause) stream.on("aborted", serverClose);
  stream.on("close", serverClose);
};
