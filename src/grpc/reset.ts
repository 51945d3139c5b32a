// Ends an HTTP/2 stream with a reset and nothing before it.
import type { Http2Stream } from "node:http2";
import { addAbortSignal } from "node:stream";

const ABORTED = AbortSignal.abort();

/**
 * Cancels a stream. `stream.close(NGHTTP2_CANCEL)` would send an end of stream first, and a cancelled upload would look
 * to the server like a complete one; only a destruction for an abort sends RST_STREAM with CANCEL alone.
 */
export const resetStream = (stream: Http2Stream): void => {
  if (!stream.destroyed) addAbortSignal(ABORTED, stream);
};
