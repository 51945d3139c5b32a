// Message framing: writes the five bytes before each message, and splits streams into messages.
import { SMALL_MESSAGE_BYTES } from "./limits.ts";
import { Code, MalformedMessageError, StatusError } from "./status.ts";

/** Bytes before each message: one flag and the length. */
export const FRAME_HEADER_BYTES = 5;

/** A message with its five header bytes, in one buffer. */
export const frame = (body: Uint8Array, compressed: boolean): Buffer => {
  const framed = Buffer.allocUnsafe(FRAME_HEADER_BYTES + body.length);
  framed[0] = compressed ? 1 : 0;
  framed.writeUInt32BE(body.length, 1);
  framed.set(body, FRAME_HEADER_BYTES);
  return framed;
};

/** Frames a message that lies behind as many free bytes of its buffer, and fills those. */
export const frameInPlace = (framed: Buffer, payloadBytes = 0): Buffer => {
  framed[0] = 0;
  framed.writeUInt32BE(framed.length - FRAME_HEADER_BYTES + payloadBytes, 1);
  return framed;
};

/** Receives message bodies in parts. `begin` may throw to refuse a message before its first byte. */
export interface BodyReceiver {
  begin(bodyBytes: number, compressed: boolean): void;
  /** Called at least once per message, with an empty slice for an empty one. The slice is not copied. */
  part(slice: Buffer, last: boolean): void;
}

const EMPTY: Buffer = Buffer.alloc(0);

/** Splits a stream of slices into message bodies. */
export class Deframer {
  readonly #receiver: BodyReceiver;
  readonly #maxBytes: number;
  #headBytes = 0;
  #flag = 0;
  #length = 0;
  /** Bytes of the current body that have not arrived. */
  #left = 0;

  constructor(receiver: BodyReceiver, maxBytes: number) {
    this.#receiver = receiver;
    this.#maxBytes = maxBytes;
  }

  /** True inside a message or its five header bytes. */
  get isInsideMessage(): boolean {
    return this.#headBytes > 0;
  }

  /**
   * Takes the next slice. Throws StatusError for a broken or too large message; the stream is then unusable.
   */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#headBytes < FRAME_HEADER_BYTES) {
        at = this.#head(chunk, at);
        continue;
      }
      const end = Math.min(at + this.#left, chunk.length);
      this.#left -= end - at;
      const slice = at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end);
      at = end;
      if (this.#left === 0) this.#headBytes = 0;
      this.#receiver.part(slice, this.#left === 0);
    }
  }

  #head(chunk: Buffer, from: number): number {
    let at = from;
    if (this.#headBytes === 0 && chunk.length - at >= FRAME_HEADER_BYTES) {
      this.#flag = chunk[at] as number;
      this.#length = chunk.readUInt32BE(at + 1);
      this.#headBytes = FRAME_HEADER_BYTES;
      at += FRAME_HEADER_BYTES;
    }
    while (at < chunk.length && this.#headBytes < FRAME_HEADER_BYTES) {
      const byte = chunk[at++] as number;
      if (this.#headBytes === 0) {
        this.#flag = byte;
        this.#length = 0;
      } else {
        this.#length = this.#length * 256 + byte;
      }
      this.#headBytes++;
    }
    if (this.#headBytes === FRAME_HEADER_BYTES) this.#begin();
    return at;
  }

  #begin(): void {
    if (this.#flag > 1) throw new MalformedMessageError(`unknown message flag ${this.#flag}`);
    if (this.#length > this.#maxBytes) {
      throw new StatusError(
        Code.RESOURCE_EXHAUSTED,
        `message of ${this.#length} bytes is larger than the limit of ${this.#maxBytes}`,
      );
    }
    this.#left = this.#length;
    this.#receiver.begin(this.#length, this.#flag === 1);
    if (this.#length === 0) {
      this.#headBytes = 0;
      this.#receiver.part(EMPTY, true);
    }
  }
}

/** Counts the bytes of large messages while they are held. */
export interface MessageBytes {
  /** Counts bytes; without room it counts nothing and throws RESOURCE_EXHAUSTED. */
  take(bytes: number): void;
  give(bytes: number): void;
  /**
   * Counts bytes now and returns undefined; or returns a cancel function, and calls `granted` once counted.
   */
  claim?(bytes: number, granted: () => void): (() => void) | undefined;
}

/** The refusal of a large message without room. */
export const tooManyLarge = (): StatusError =>
  new StatusError(Code.RESOURCE_EXHAUSTED, "too many large messages at once");

/** A count of bytes held by ordinary messages, shared by all calls of a channel. */
export class MessageBudget implements MessageBytes {
  readonly #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  take(bytes: number): void {
    if (this.#usedBytes + bytes > this.#maxBytes) throw tooManyLarge();
    this.#usedBytes += bytes;
  }

  give(bytes: number): void {
    this.#usedBytes -= bytes;
  }
}

/** Pauses the peer while there is no room for its message. */
export interface PausableStream {
  pause(): unknown;
  resume(): unknown;
}

/** Collects each body into one buffer; a body in one slice is passed on without a copy. */
export class WholeBodies implements BodyReceiver {
  readonly #deliver: (body: Buffer, compressed: boolean) => void;
  readonly #budget: MessageBytes;
  /** Waits for room before a large body instead of refusing it; undefined where the budget refuses. */
  readonly #stream: PausableStream | undefined;
  #compressed = false;
  #bodyBytes = 0;
  #collected: Buffer = EMPTY;
  #filledBytes = 0;
  #takenBytes = 0;
  #stopWaiting: (() => void) | undefined;

  constructor(
    budget: MessageBytes,
    deliver: (body: Buffer, compressed: boolean) => void,
    stream?: PausableStream,
  ) {
    this.#budget = budget;
    this.#deliver = deliver;
    this.#stream = stream;
  }

  /** True while the body and its peer wait for room. */
  get isWaiting(): boolean {
    return this.#stopWaiting !== undefined;
  }

  begin(bodyBytes: number, compressed: boolean): void {
    this.#compressed = compressed;
    this.#bodyBytes = bodyBytes;
  }

  part(slice: Buffer, last: boolean): void {
    if (last && this.#filledBytes === 0) {
      this.release();
      this.#deliver(slice, this.#compressed);
      return;
    }
    const filledBytes = this.#filledBytes + slice.length;
    if (filledBytes > this.#collected.length) this.#grow(filledBytes);
    slice.copy(this.#collected, this.#filledBytes);
    this.#filledBytes = filledBytes;
    if (!last) return;
    const body = this.#collected;
    this.#collected = EMPTY;
    this.#filledBytes = 0;
    // A paused sender's next body waits for room, so this one counts until it is released.
    if (this.#stream === undefined) this.release();
    this.#deliver(body, this.#compressed);
  }

  /**
   * Grows with the received bytes, not the declared length, which may be a lie. Slices are copied at once: a
   * body in frames of one byte would otherwise cost a buffer for each byte.
   */
  #grow(neededBytes: number): void {
    const bytes = Math.min(this.#bodyBytes, Math.max(SMALL_MESSAGE_BYTES, neededBytes * 2));
    if (bytes > SMALL_MESSAGE_BYTES) this.#count(bytes);
    const grown = Buffer.allocUnsafeSlow(bytes);
    this.#collected.copy(grown, 0, 0, this.#filledBytes);
    this.#collected = grown;
  }

  /**
   * Counts collected bytes; a pausable sender's body as a whole, so that no two bodies wait for each other.
   */
  #count(bytes: number): void {
    const stream = this.#stream;
    if (stream === undefined) {
      this.#budget.take(bytes - this.#takenBytes);
      this.#takenBytes = bytes;
      return;
    }
    if (this.#takenBytes > 0 || this.isWaiting) return;
    const granted = (): void => {
      this.#stopWaiting = undefined;
      this.#takenBytes = this.#bodyBytes;
      stream.resume();
    };
    this.#stopWaiting = this.#budget.claim?.(this.#bodyBytes, granted);
    if (this.isWaiting) stream.pause();
    else this.#takenBytes = this.#bodyBytes;
  }

  /** Drops an unfinished message, and uncounts it or the one delivered. */
  release(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    this.#budget.give(this.#takenBytes);
    this.#takenBytes = 0;
    this.#collected = EMPTY;
    this.#filledBytes = 0;
  }
}
