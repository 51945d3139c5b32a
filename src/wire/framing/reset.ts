// Resets of HTTP/2 streams: when one may be sent, how to send it with nothing before it, and what a received one means.
import { constants, type Http2Stream } from "node:http2";
import { addAbortSignal } from "node:stream";
import { Code, StatusError } from "./status.ts";

const ABORTED = AbortSignal.abort();

/**
 * Runs something that resets streams, or ends a session and with it its streams, when no frame is being read: at the end of this turn
 * of the event loop. Whatever a frame brings about in JavaScript, promises and ticks included, runs while nghttp2 still reads that
 * frame. There Node 26.10 may send at once when a stream with unsent data is reset; and if that sends an earlier reset of the stream
 * whose frame is being read, nghttp2 frees the stream and then writes to it: a corrupt heap, and a segmentation fault some
 * collections later. A client that gave several uploads up at once did just that.
 */
export const outsideReading = (run: () => void): void => {
  setImmediate(run);
};

/**
 * Cancels a stream, at the end of this turn of the event loop; what arrives until then is the caller's to ignore.
 * `stream.close(NGHTTP2_CANCEL)` would send an end of stream first, and a cancelled upload would look to the server like a complete
 * one; only a destruction for an abort sends RST_STREAM with CANCEL alone.
 */
export const resetStream = (stream: Http2Stream): void => {
  outsideReading(() => {
    if (!stream.destroyed) addAbortSignal(ABORTED, stream);
  });
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
