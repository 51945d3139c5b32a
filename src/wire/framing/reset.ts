// Resets of HTTP/2 streams: when and how to send one, and the meaning of a received one.
import { constants, type Http2Stream } from "node:http2";
import { addAbortSignal } from "node:stream";
import { Code, StatusError } from "./status.ts";

const ABORTED = AbortSignal.abort();

/**
 * Runs a function that resets streams or ends sessions at the end of this turn of the event loop, when no
 * frame is being read. JavaScript that a frame triggers, promises and ticks included, runs while nghttp2
 * still reads that frame. There Node 26.10 may send at once when a stream with unsent data is reset. If that
 * sends an earlier reset of the stream whose frame is being read, nghttp2 frees the stream and then writes to
 * it. The heap is corrupt, and the process crashes some collections later. A client that gives up several
 * uploads at once triggers it.
 */
export const outsideReading = (run: () => void): void => {
  setImmediate(run);
};

/**
 * Cancels a stream at the end of this turn of the event loop; the caller ignores what arrives until then.
 * `stream.close(NGHTTP2_CANCEL)` would send an end of stream first, and the server would take a cancelled
 * upload for a complete one. Only a destruction for an abort sends RST_STREAM with CANCEL alone.
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
