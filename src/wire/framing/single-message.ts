// Receives the one message of a unary request or reply.
import type { DescMessage } from "@bufbuild/protobuf";
import { Deframer, FRAME_HEADER_BYTES, type PausableStream, WholeBodies } from "./frames.ts";
import { decodeBody, type MessageDeps, plainBody, type WaitingBody } from "./inbox.ts";
import { Code, MalformedMessageError, StatusError } from "./status.ts";

/** Decodes a message; throws for invalid bytes. */
export type ReplyDecoder = (body: Buffer) => unknown;

/** Takes slices until the stream ends, and returns the one message that they must hold. */
export class SingleMessage {
  readonly #deps: MessageDeps;
  readonly #stream: PausableStream | undefined;
  #body: Buffer | undefined;
  #isCompressed = false;
  #bodies: WholeBodies | undefined;
  #deframer: Deframer | undefined;

  /** With a stream, a large message waits for room in the budget; without one it is refused. */
  constructor(deps: MessageDeps, stream?: PausableStream) {
    this.#deps = deps;
    this.#stream = stream;
  }

  /** True while the message and its sender wait for room. */
  get isWaiting(): boolean {
    return this.#bodies?.isWaiting === true;
  }

  /** Takes a slice. Throws StatusError when it breaks the protocol, or begins a second message. */
  push(chunk: Buffer): void {
    // Nearly every unary message comes in one slice, which needs no splitting.
    const isWhole =
      this.#deframer === undefined &&
      this.#body === undefined &&
      chunk.length >= FRAME_HEADER_BYTES &&
      chunk.length - FRAME_HEADER_BYTES <= this.#deps.limits.receiveMessageBytes &&
      (chunk[0] as number) <= 1 &&
      chunk.readUInt32BE(1) === chunk.length - FRAME_HEADER_BYTES;
    if (isWhole) {
      this.#body = chunk.subarray(FRAME_HEADER_BYTES);
      this.#isCompressed = chunk[0] === 1;
    } else {
      this.#deframer ??= this.#open();
      this.#deframer.push(chunk);
    }
  }

  /**
   * The message, after the end of the stream; `decode` replaces the general decoder. Throws or rejects with
   * StatusError when it is missing or broken.
   */
  take(desc: DescMessage, encoding: string, decode?: ReplyDecoder): unknown {
    const waiting = this.#takeBody();
    if (decode === undefined) return decodeBody(desc, waiting, encoding, this.#deps);
    const plain = plainBody(waiting, encoding, this.#deps);
    return plain instanceof Promise
      ? plain.then((bytes) => decodeOwn(desc, decode, bytes))
      : decodeOwn(desc, decode, plain);
  }

  /** Drops the received bytes, and gives back the room of the message, whose handler has ended. */
  release(): void {
    this.#body = undefined;
    this.#bodies?.release();
    this.#deps.room?.release();
  }

  #takeBody(): WaitingBody {
    if (this.#deframer?.isInsideMessage === true) {
      throw new MalformedMessageError("the stream ended inside a message");
    }
    const body = this.#body;
    if (body === undefined)
      throw new StatusError(Code.UNIMPLEMENTED, "one message was expected and none came");
    this.#body = undefined;
    return { body, compressed: this.#isCompressed };
  }

  #open(): Deframer {
    const { budget, limits } = this.#deps;
    const deliver = (body: Buffer, isCompressed: boolean): void => {
      if (this.#body !== undefined) {
        throw new StatusError(Code.UNIMPLEMENTED, "one message was expected and more came");
      }
      this.#body = body;
      this.#isCompressed = isCompressed;
    };
    this.#bodies = new WholeBodies(budget, deliver, this.#stream);
    return new Deframer(this.#bodies, limits.receiveMessageBytes);
  }
}

const decodeOwn = (desc: DescMessage, decode: ReplyDecoder, bytes: Uint8Array): unknown => {
  try {
    return decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  } catch (cause) {
    throw new MalformedMessageError(`not a valid ${desc.typeName}`, { cause });
  }
};
