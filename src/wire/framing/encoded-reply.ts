// A reply that its handler has already encoded, for messages with an encoder of their own.
import { FRAME_HEADER_BYTES } from "./frames.ts";

/** The bytes of one message of the method's output type, which the server sends unchecked. */
export class EncodedReply {
  /** Free bytes before the message for the frame header, so that it is sent without a copy. */
  static readonly HEAD_BYTES: number = FRAME_HEADER_BYTES;
  /** The message behind HEAD_BYTES bytes, which the server fills; used once. */
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}
