// Resets of HTTP/2 streams: sending one with nothing before it, and what a received one means.
import { constants, type Http2Stream } from "node:http2";
import { addAbortSignal } from "node:stream";
import { Code, StatusError } from "./status.ts";

const ABORTED = AbortSignal.abort();

/**
 * Cancels a stream. `stream.close(NGHTTP2_CANCEL)` would send an end of stream first, and a cancelled upload would look
 * to the server like a complete one; only a destruction for an abort sends RST_STREAM with CANCEL alone.
 */
export const resetStream = (stream: Http2Stream): void => {
  if (!stream.destroyed) addAbortSignal(ABORTED, stream);
};

const RESET_CODES: Readonly<Record<number, Code>> = {
  [constants.NGHTTP2_REFUSED_STREAM]: Code.UNAVAILABLE,
  [constants.NGHTTP2_CANCEL]: Code.CANCELLED,
  [constants.NGHTTP2_ENHANCE_YOUR_CALM]: Code.RESOURCE_EXHAUSTED,
  [constants.NGHTTP2_INADEQUATE_SECURITY]: Code.PERMISSION_DENIED,
};

/** The status of a call whose stream was closed without one. */
export const statusOfReset = (code: number): StatusError =>
  new StatusError(
    RESET_CODES[code] ?? Code.INTERNAL,
    `the stream was closed without a status (HTTP/2 code ${code})`,
  );
