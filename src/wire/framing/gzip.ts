// Compresses messages, and decompresses them within limits of size and number.
import { promisify } from "node:util";
import { gunzip, gunzipSync, gzip } from "node:zlib";
import { type MessageLimits, UNFOLDED_AT_ONCE } from "./limits.ts";
import { Code, MalformedMessageError, StatusError } from "./status.ts";

/** Larger compressed input, or output, is decompressed on a pool thread instead of the event loop. */
const SYNC_GUNZIP_BYTES = 4_096;
const SYNC_UNFOLDED_BYTES = 65_536;
/** A header of 10 bytes, an empty block of 2, and 8 of checksum and size. */
const GZIP_SHORTEST_BYTES = 20;

const gunzipAsync = promisify(gunzip);
const gzipAsync = promisify(gzip);

/** Compresses a message body with gzip. */
export const compress = (body: Uint8Array): Promise<Buffer> => gzipAsync(body);

/** Decompresses the gzip bodies of all calls of a server or channel. */
export class Decompressor {
  readonly #maxBytes: number;
  readonly #waiting: (() => void)[] = [];
  #atWork = 0;

  constructor(limits: Pick<MessageLimits, "maxDecompressedBytes" | "receiveMessageBytes">) {
    this.#maxBytes = Math.min(limits.maxDecompressedBytes, limits.receiveMessageBytes);
  }

  /**
   * The decompressed body. RESOURCE_EXHAUSTED above `mostBytes`, or above the size that it declares; a broken body
   * fails as a malformed message.
   */
  unfold(body: Uint8Array, mostBytes: number): Uint8Array | Promise<Uint8Array> {
    const maxBytes = this.unfoldedBytes(body, mostBytes);
    if (body.length > SYNC_GUNZIP_BYTES || maxBytes > SYNC_UNFOLDED_BYTES)
      return this.#inTurn(body, maxBytes);
    try {
      return gunzipSync(body, { maxOutputLength: maxBytes });
    } catch (cause) {
      throw failure(cause, maxBytes);
    }
  }

  /** The most that a body may unfold to, by the size that it declares; RESOURCE_EXHAUSTED above `mostBytes`. */
  unfoldedBytes(body: Uint8Array, mostBytes: number): number {
    const maxBytes = Math.min(this.#maxBytes, mostBytes);
    const said = saidBytes(body);
    if (said > maxBytes) throw tooLarge(maxBytes);
    return Math.max(said, 1);
  }

  /**
   * Runs a few at a time on the thread pool, since every bomb may hold as much as a message may unfold to.
   */
  async #inTurn(body: Uint8Array, maxBytes: number): Promise<Uint8Array> {
    // A finished task hands its place over, so the count stays.
    if (this.#atWork < UNFOLDED_AT_ONCE) this.#atWork++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await gunzipAsync(body, { maxOutputLength: maxBytes });
    } catch (cause) {
      throw failure(cause, maxBytes);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#atWork--;
      else next();
    }
  }
}

function failure(cause: unknown, maxBytes: number): StatusError {
  return (cause as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE"
    ? tooLarge(maxBytes)
    : new MalformedMessageError("message is not valid gzip", { cause });
}

function tooLarge(maxBytes: number): StatusError {
  return new StatusError(Code.RESOURCE_EXHAUSTED, `message unfolds to more than ${maxBytes} bytes`);
}

/**
 * The decompressed size that a gzip body declares, modulo 2^32: its last four bytes (RFC 1952, 2.3.1). 0 for
 * a body that is too short.
 */
const saidBytes = (body: Uint8Array): number => {
  if (body.length < GZIP_SHORTEST_BYTES || body[0] !== 0x1f || body[1] !== 0x8b) return 0;
  return new DataView(body.buffer, body.byteOffset + body.length - 4, 4).getUint32(0, true);
};
