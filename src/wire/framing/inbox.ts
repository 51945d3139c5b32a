// Messages on their way in: a queue between the HTTP/2 stream, which pushes, and the consumer, who pulls.
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { Deframer, type MessageBytes, type PausableStream, WholeBodies } from "./frames.ts";
import type { Decompressor } from "./gzip.ts";
import { RECEIVE_QUEUE_BYTES, type ReceiveLimits, SMALL_MESSAGE_BYTES } from "./limits.ts";
import { hasMoreFieldsThan } from "./message-fields.ts";
import { Code, MalformedMessageError, StatusError } from "./status.ts";

/** Counted for each waiting message beside its bytes, so that empty ones fill the queue too. */
export const MESSAGE_OVERHEAD_BYTES = 256;

/** What bounds the messages that one call receives. */
export interface MessageDeps {
  readonly limits: ReceiveLimits;
  readonly budget: MessageBytes;
  readonly unfolder: Decompressor;
}

/** What an inbox needs. */
export interface InboxDeps extends MessageDeps {
  readonly stream: PausableStream;
  /** The encoding that the peer declared: a compressed message without one is an error. */
  encoding: string;
  /** Called when a loop over the inbox ends, at its end or before. */
  readonly onLeave?: () => void;
}

/** Decodes a body, unfolding it first when compressed. Anything invalid is INTERNAL, and RESOURCE_EXHAUSTED what is beyond the limits. */
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

/** The body as it was before it was compressed, if it was. */
export const plainBody = (
  { body, compressed }: WaitingBody,
  encoding: string,
  { limits, unfolder }: MessageDeps,
): Uint8Array | Promise<Uint8Array> => {
  if (!compressed) return body;
  if (encoding === "identity") {
    // The one malformed message for which gRPC itself names the status (its document on compression).
    throw new MalformedMessageError("compressed message without grpc-encoding", {}, Code.INTERNAL);
  }
  return unfolder.unfold(body, limits.receiveMessageBytes);
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
 * The queue itself: `T` is what `next` hands out. It pauses the stream while too much waits, keeps what has arrived
 * before the end, and after a failure hands out nothing more.
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

  /** The next one, null after the last; throws or rejects with the StatusError that ended the call. */
  abstract next(): T | null | Promise<T | null>;

  /** Takes a slice from the stream. Throws StatusError when the peer breaks the protocol. */
  abstract push(chunk: Buffer): void;

  /** What the peer's headers declared, where they come after the inbox was made. */
  setEncoding(encoding: string): void {
    this.deps.encoding = encoding;
  }

  /** True while a message has begun and not arrived whole. */
  abstract get isInsideMessage(): boolean;

  /** True while the consumer, not the peer, is what holds the stream up. */
  get isPaused(): boolean {
    return this.#paused;
  }

  /** The peer has sent everything; what waits is handed out, then null, or the error given. Throws when a message is cut off. */
  end(error?: StatusError): void {
    if (error === undefined && this.isInsideMessage) {
      throw new MalformedMessageError("the stream ended inside a message");
    }
    this.#ended = true;
    this.#endError = error;
    this.wake();
  }

  /** Ends the queue with an error; what waits in it is dropped. */
  fail(error: StatusError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.drop();
    this.wake();
  }

  /** Pulls one after another. */
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

  /** Whether everything has come; throws when that was the end of a failed call. */
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

  /** Counts a whole message that waits for the consumer, against the budget too when it is large. */
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

/** A message that waits whole. */
export interface WaitingBody {
  readonly body: Buffer;
  readonly compressed: boolean;
}

/** The ordinary inbox: whole messages, decoded only when asked for, so that nothing small unfolds into memory early. */
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
