// Sends the requests of a client call: one message, or a stream of them.
import type { ClientHttp2Stream } from "node:http2";
import {
  create,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FRAME_HEADER_BYTES, frame, frameInPlace } from "./frames.ts";
import { compress } from "./gzip.ts";
import { SEND_WINDOW_BYTES } from "./limits.ts";
import type { SendQueue } from "./send-queue.ts";
import { Code, StatusError } from "./status.ts";

/** The stream of one attempt. */
export interface Wire {
  readonly stream: ClientHttp2Stream;
  readonly outlet: () => SendQueue;
  /** True when the call has ended, or continues over another stream. */
  readonly isOver: () => boolean;
  /** Ends the call when its requests fail to arrive or to be sent. */
  readonly fail: (error: StatusError) => void;
}

/** The requests of a call. */
export interface Requests {
  /** False after taking a request that a second attempt could not send again. */
  readonly isReplayable: boolean;
  /** Sends the requests over a new stream. */
  send(wire: Wire): void;
}

/**
 * Encodes a request behind `headBytes` free bytes; undefined for one that the general encoder has to judge. Throws
 * nothing.
 */
export type RequestEncoder = (request: unknown, headBytes: number) => Buffer | undefined;

const encode = (desc: DescMessage, request: unknown, maxBytes: number): Uint8Array => {
  const body = toBinary(desc, create(desc, request as MessageInitShape<DescMessage>));
  if (body.length > maxBytes) {
    throw new StatusError(
      Code.RESOURCE_EXHAUSTED,
      `request of ${body.length} bytes is larger than the limit of ${maxBytes}`,
    );
  }
  return body;
};

class OneRequest implements Requests {
  readonly isReplayable = true;
  readonly #body: Uint8Array;
  readonly #compresses: boolean;

  constructor(body: Uint8Array, compresses: boolean) {
    this.#body = body;
    this.#compresses = compresses;
  }

  send(wire: Wire): void {
    void this.#send(wire);
  }

  async #send(wire: Wire): Promise<void> {
    const framed = this.#compresses ? frame(await compress(this.#body), true) : frame(this.#body, false);
    if (wire.isOver()) return;
    try {
      const written = wire.outlet().write(framed);
      if (written !== true) await written;
      wire.stream.end();
    } catch {
      // The stream's close reports failed writes.
    }
  }
}

class RequestStream implements Requests {
  readonly #desc: DescMessage;
  readonly #requests: AsyncIterator<unknown>;
  readonly #compresses: boolean;
  readonly #maxBytes: number;
  /** A requested and unsent message, which a second attempt must not request again. */
  #asked: Promise<IteratorResult<unknown>> | undefined;
  isReplayable = true;

  constructor(desc: DescMessage, requests: AsyncIterable<unknown>, compresses: boolean, maxBytes: number) {
    this.#desc = desc;
    this.#requests = requests[Symbol.asyncIterator]();
    this.#compresses = compresses;
    this.#maxBytes = maxBytes;
  }

  send(wire: Wire): void {
    void this.#sendAll(wire);
  }

  async #sendAll(wire: Wire): Promise<void> {
    try {
      for (;;) {
        this.#asked ??= this.#requests.next();
        const next = await this.#asked;
        if (wire.isOver()) return this.#leave();
        this.#asked = undefined;
        if (next.done === true) break;
        this.isReplayable = false;
        const body = encode(this.#desc, next.value, this.#maxBytes);
        const framed = this.#compresses ? frame(await compress(body), true) : frame(body, false);
        if (wire.isOver()) return this.#leave();
        const written = wire.outlet().write(framed);
        if (written !== true) await written;
      }
      wire.stream.end();
    } catch (error) {
      this.#leave();
      // The call already has its outcome; a closed stream reports itself.
      if (wire.isOver() || wire.stream.destroyed) return;
      wire.fail(
        error instanceof StatusError
          ? error
          : new StatusError(Code.CANCELLED, "the requests failed", { cause: error }),
      );
    }
  }

  /** Lets the source of the requests clean up, unless a second attempt continues with it. */
  #leave(): void {
    if (this.isReplayable) return;
    Promise.resolve(this.#requests.return?.()).catch(() => undefined);
  }
}

/**
 * Encodes the caller's requests for a method. One small message, the usual case, is returned in its wire
 * form. `encodeOwn` replaces the general encoder for a single message. Throws when a single request cannot be
 * encoded.
 */
export const requestsOf = (
  method: DescMethod,
  given: unknown,
  compresses: boolean,
  maxBytes: number,
  encodeOwn?: RequestEncoder,
): Requests | Buffer => {
  const { input, methodKind } = method;
  if (methodKind === "client_streaming" || methodKind === "bidi_streaming") {
    return new RequestStream(input, given as AsyncIterable<unknown>, compresses, maxBytes);
  }
  const own = compresses ? undefined : encodeOwn?.(given, FRAME_HEADER_BYTES);
  const isUsual =
    own !== undefined && own.length - FRAME_HEADER_BYTES < Math.min(SEND_WINDOW_BYTES, maxBytes);
  if (isUsual) return frameInPlace(own);
  const body = encode(input, given, maxBytes);
  return compresses || body.length >= SEND_WINDOW_BYTES
    ? new OneRequest(body, compresses)
    : frame(body, false);
};
