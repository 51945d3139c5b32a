// A reply whose bytes the handler has made itself, for messages that are worth an encoder of their own.

/** The bytes of one message of the method's output type. Nobody checks them. */
export class EncodedReply {
  readonly body: Uint8Array;

  constructor(body: Uint8Array) {
    this.body = body;
  }
}
