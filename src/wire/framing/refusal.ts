// Answers to requests that become no call.
import type { ServerHttp2Stream } from "node:http2";
import { FRAME_COST_BYTES } from "./limits.ts";
import { type StatusError, statusHeaders } from "./status.ts";

const TRAILERS_ONLY = { endStream: true, sendDate: false };
const REFUSED: readonly string[] = [
  ":status",
  "200",
  "content-type",
  "application/grpc",
  "grpc-accept-encoding",
  "identity,gzip",
];

/**
 * The connection of a refused request. Where it is proven, the request's remaining bytes count as taken;
 * elsewhere only those within its windows.
 */
interface RefusedOn {
  readonly isProven: boolean;
  readonly flood: { took(bytes: number): void };
}

/** Answers with only these headers and drops the rest of the request; no call begins. */
export const refuse = (stream: ServerHttp2Stream, on: RefusedOn, headers: string[]): undefined => {
  if (stream.destroyed || stream.closed) return;
  stream.respond(headers, TRAILERS_ONLY);
  stream.on("data", (chunk: Buffer) => {
    if (on.isProven) on.flood.took(chunk.length + FRAME_COST_BYTES);
  });
};

/** The headers of statuses that refuse many calls alike. */
const PREBUILT = new WeakMap<StatusError, readonly string[]>();

/** Answers with a status, the supported encodings, and the call's own headers. */
export const refuseWith = (
  stream: ServerHttp2Stream,
  on: RefusedOn,
  error: StatusError,
  extra: readonly string[] = [],
): undefined => {
  let headers = PREBUILT.get(error);
  if (headers === undefined) {
    headers = [...REFUSED, ...statusHeaders(error)];
    PREBUILT.set(error, headers);
  }
  refuse(stream, on, [...headers, ...extra]);
};
