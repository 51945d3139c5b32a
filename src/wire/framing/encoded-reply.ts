// A reply whose bytes the handler has made itself, for messages that are worth an encoder of their own.
import { FRAME_HEADER_BYTES } from "./frames.ts";

/** The bytes of one message of the method's output type. Nobody checks them. */
export class EncodedReply {
  /** Bytes of room before the message, so that it is sent as it lies. */
  static readonly HEAD_BYTES: number = FRAME_HEADER_BYTES;
  /** The message behind HEAD_BYTES bytes, which the server writes; used once. */
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}
