// Answers to requests that become no call.
import type { ServerHttp2Stream } from "node:http2";
import { FRAME_COST_BYTES } from "./limits.ts";
import { type StatusError, statusHeaders } from "./status.ts";

const TRAILERS_ONLY = { endStream: true, sendDate: false };
const ACCEPTED = "grpc-accept-encoding";
const ENCODINGS = "identity,gzip";

/** The connection of the request: what is still sent of it counts as taken. */
interface RefusedOn {
  readonly flood: { took(bytes: number): void };
}

/** Answers with these headers alone, and drops what else comes of the request: there is no call. */
export const refuse = (stream: ServerHttp2Stream, { flood }: RefusedOn, headers: string[]): undefined => {
  if (stream.destroyed || stream.closed) return;
  stream.respond(headers, TRAILERS_ONLY);
  stream.on("data", (chunk: Buffer) => flood.took(chunk.length + FRAME_COST_BYTES));
};

/** Answers with a status, and with the encodings that would have done. */
export const refuseWith = (stream: ServerHttp2Stream, on: RefusedOn, error: StatusError): undefined =>
  refuse(stream, on, [
    ":status",
    "200",
    "content-type",
    "application/grpc",
    ACCEPTED,
    ENCODINGS,
    ...statusHeaders(error),
  ]);
