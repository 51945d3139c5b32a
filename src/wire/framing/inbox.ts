// Incoming messages: a queue between the HTTP/2 stream, which pushes, and the consumer, which pulls.
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { Deframer, type MessageBytes, type PausableStream, WholeBodies } from "./frames.ts";
import type { Decompressor } from "./gzip.ts";
import { RECEIVE_QUEUE_BYTES, type ReceiveLimits, SMALL_MESSAGE_BYTES } from "./limits.ts";
import { hasMoreFieldsThan } from "./message-fields.ts";
import { Code, MalformedMessageError, StatusError } from "./status.ts";
import type { UnfoldedRoom } from "./unfolded-room.ts";

/** Counted per waiting message besides its bytes, so that empty ones fill the queue too. */
export const MESSAGE_OVERHEAD_BYTES = 256;

/** Limits of the messages that one call receives. */
export interface MessageDeps {
  readonly limits: ReceiveLimits;
  readonly budget: MessageBytes;
  readonly unfolder: Decompressor;
  /** Room for unfolded messages; undefined where they are not counted. */
  readonly room?: UnfoldedRoom | undefined;
}

/** Dependencies of an inbox. */
export interface InboxDeps extends MessageDeps {
  readonly stream: PausableStream;
  /** The encoding that the peer declared: a compressed message without one is an error. */
  encoding: string;
  /** Called when a loop over the inbox ends, at its end or before. */
  readonly onLeave?: () => void;
}

/**
 * Decodes a body, decompressed if needed. Throws INTERNAL for invalid ones, RESOURCE_EXHAUSTED over limits.
 */
export const decodeBody = <D extends DescMessage>(
  desc: D,
  body: WaitingBody,
  encoding: string,
  deps: MessageDeps,
): MessageShape<D> | Promise<MessageShape<D>> => {
  const plain = plainBody(body, encoding, deps);
  return plain instanceof Promise
    ? plain.then((bytes) => decodePlain(desc, bytes, deps.limits))
    : decodePlain(desc, plain, deps.limits);
};

/** The body, decompressed if it was compressed. */
export const plainBody = (
  { body, compressed }: WaitingBody,
  encoding: string,
  { limits, unfolder, room }: MessageDeps,
): Uint8Array | Promise<Uint8Array> => {
  if (!compressed) return body;
  if (encoding === "identity") {
    // The one malformed message whose status gRPC itself defines (its document on compression).
    throw new MalformedMessageError("compressed message without grpc-encoding", {}, Code.INTERNAL);
  }
  const unfold = () => unfolder.unfold(body, limits.receiveMessageBytes);
  const taken = room?.take(unfolder.unfoldedBytes(body, limits.receiveMessageBytes));
  return taken instanceof Promise ? taken.then(unfold) : unfold();
};

const decodePlain = <D extends DescMessage>(
  desc: D,
  body: Uint8Array,
  { receiveFields }: ReceiveLimits,
): MessageShape<D> => {
  if (hasMoreFieldsThan(desc, body, receiveFields)) {
    throw new StatusError(Code.RESOURCE_EXHAUSTED, `message has more than ${receiveFields} fields`);
  }
  try {
    return fromBinary(desc, body, { readUnknownFields: false });
  } catch (cause) {
    throw new MalformedMessageError(`not a valid ${desc.typeName}`, { cause });
  }
};

/**
 * The queue itself: `next` returns a `T`. It pauses the stream while too much waits. It still hands out what
 * arrived before the end, and nothing after a failure.
 */
export abstract class Inbox<T> {
  protected readonly deps: InboxDeps;
  #heldBytes = 0;
  #paused = false;
  #ended = false;
  #endError: StatusError | undefined;
  #failure: StatusError | undefined;
  #wake: (() => void) | undefined;

  protected constructor(deps: InboxDeps) {
    this.deps = deps;
  }

  /** The next message, null after the last; throws or rejects with the StatusError that ended the call. */
  abstract next(): T | null | Promise<T | null>;

  /** Takes a slice from the stream. Throws StatusError when the peer breaks the protocol. */
  abstract push(chunk: Buffer): void;

  /** Sets the encoding from the peer's headers when they arrive after the inbox was made. */
  setEncoding(encoding: string): void {
    this.deps.encoding = encoding;
  }

  /** True while a message has arrived in part. */
  abstract get isInsideMessage(): boolean;

  /** True while the consumer, not the peer, holds the stream up. */
  get isPaused(): boolean {
    return this.#paused;
  }

  /** Marks the end: `next` drains the queue, then gives null or the error. Throws inside a message. */
  end(error?: StatusError): void {
    if (error === undefined && this.isInsideMessage) {
      throw new MalformedMessageError("the stream ended inside a message");
    }
    this.#ended = true;
    this.#endError = error;
    this.wake();
  }

  /** Ends the queue with an error and drops its messages. */
  fail(error: StatusError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.drop();
    this.wake();
  }

  /** Gives back the room of the last message, with which its consumer is done: an idle stream holds none. */
  release(): void {
    this.deps.room?.release();
  }

  /** Pulls messages one after another. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    try {
      for (;;) {
        const next = this.next();
        const value = next instanceof Promise ? await next : next;
        if (value === null) return;
        yield value;
      }
    } finally {
      this.deps.onLeave?.();
    }
  }

  protected abstract drop(): void;

  /** Whether everything has come; throws after a failed call. */
  protected hasEnded(): boolean {
    if (this.#endError !== undefined) throw this.#endError;
    return this.#ended;
  }

  protected throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  protected hold(bytes: number): void {
    this.#heldBytes += bytes;
    if (this.#heldBytes >= RECEIVE_QUEUE_BYTES && !this.#paused) {
      this.#paused = true;
      this.deps.stream.pause();
    }
  }

  protected letGo(bytes: number): void {
    this.#heldBytes -= bytes;
    if (this.#paused && this.#heldBytes < RECEIVE_QUEUE_BYTES / 2) {
      this.#paused = false;
      this.deps.stream.resume();
    }
  }

  /** Counts a whole message that waits for the consumer, and a large one also against the budget. */
  protected holdBody(body: Buffer): void {
    if (body.length > SMALL_MESSAGE_BYTES) this.deps.budget.take(body.length);
    this.hold(body.length + MESSAGE_OVERHEAD_BYTES);
  }

  protected letGoBody(body: Buffer): void {
    if (body.length > SMALL_MESSAGE_BYTES) this.deps.budget.give(body.length);
    this.letGo(body.length + MESSAGE_OVERHEAD_BYTES);
  }

  protected wake(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** Resolves at the next change. There is one consumer, so one waiter. */
  protected changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** A whole message that waits. */
export interface WaitingBody {
  readonly body: Buffer;
  readonly compressed: boolean;
}

/** The inbox of whole messages, decoded only on request, so that none unfolds into memory early. */
export class MessageInbox<D extends DescMessage> extends Inbox<MessageShape<D>> {
  readonly #desc: D;
  readonly #bodies: WholeBodies;
  readonly #deframer: Deframer;
  readonly #waiting: WaitingBody[] = [];

  constructor(desc: D, deps: InboxDeps) {
    super(deps);
    this.#desc = desc;
    this.#bodies = new WholeBodies(deps.budget, (body, compressed) => {
      this.holdBody(body);
      this.#waiting.push({ body, compressed });
      this.wake();
    });
    this.#deframer = new Deframer(this.#bodies, deps.limits.receiveMessageBytes);
  }

  override get isInsideMessage(): boolean {
    return this.#deframer.isInsideMessage;
  }

  override push(chunk: Buffer): void {
    this.#deframer.push(chunk);
  }

  override next(): MessageShape<D> | null | Promise<MessageShape<D> | null> {
    this.throwIfFailed();
    this.release();
    const first = this.#waiting.shift();
    if (first !== undefined) {
      this.letGoBody(first.body);
      return decodeBody(this.#desc, first, this.deps.encoding, this.deps);
    }
    if (this.hasEnded()) return null;
    return this.changed().then(() => this.next());
  }

  protected override drop(): void {
    for (const { body } of this.#waiting.splice(0)) this.letGoBody(body);
    this.#bodies.release();
  }
}
