// The streaming-bytes form: messages that end in a bytes field, whose payload passes in slices, never joined.
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { Deframer, WholeBodies } from "#wire/framing/frames.ts";
import { GrowingBytes } from "#wire/framing/growing-bytes.ts";
import {
  decodeBody,
  Inbox,
  type InboxDeps,
  MESSAGE_OVERHEAD_BYTES,
  type WaitingBody,
} from "#wire/framing/inbox.ts";
import type { SendQueue } from "#wire/framing/send-queue.ts";
import { ScanPlace, type SlicedField } from "#wire/framing/sliced-field.ts";
import { Code, MalformedMessageError, StatusError } from "#wire/framing/status.ts";
import type { CallContext, MaybePromise } from "./call-context.ts";

/** Takes the next slice of a payload. The one after it comes once a promise has resolved. */
export type SliceTaker = (slice: Buffer) => true | Promise<void>;

/** Returns the payload of one message slice by slice. */
export interface SlicePuller {
  /**
   * The next slice as it came off the socket, null after the last; a promise only when none has arrived.
   * Throws or rejects with the StatusError that ended the call. A slice is part of a larger buffer: copy it
   * to keep it for long.
   */
  read(): Buffer | null | Promise<Buffer | null>;
  /**
   * Gives all slices to `take`, each as it comes off the socket, and resolves after the last: no promise is made
   * for a slice. Rejects with the StatusError that ended the call. What `take` throws ends the call.
   */
  pour(take: SliceTaker): Promise<void>;
}

/** One message with its payload still arriving. */
export interface SlicedMessage<D extends DescMessage> {
  /** The message with its bytes field empty. */
  readonly message: MessageShape<D>;
  readonly payloadBytes: number;
  readonly payload: SlicePuller;
}

/** A stream of sliced messages. Requesting the next one drops unread bytes of the one before. */
export interface SlicedSource<D extends DescMessage> extends AsyncIterable<SlicedMessage<D>> {
  /** The next message, null after the last; a promise only when none has arrived. */
  next(): SlicedMessage<D> | null | Promise<SlicedMessage<D> | null>;
}

/** Sends messages whose payload follows slice by slice. */
export interface SlicedWriter<D extends DescMessage> {
  /** True when a write would not wait: a good time to read from the disk. */
  readonly isWritable: boolean;
  /** How long the peer has taken nothing although bytes wait for it; 0 when none wait. */
  readonly stalledMs: number;
  /**
   * Resolves to true once a write would not wait, to false after timeoutMs. Rejects when the call has ended.
   */
  whenWritable(timeoutMs?: number): Promise<boolean>;
  /**
   * Begins a message without its bytes field, for exactly payloadBytes of slices. Await a promise to go on.
   */
  message(init: MessageInitShape<D>, payloadBytes: number): true | Promise<void>;
  /** Sends the next slice without a copy: do not change it afterwards. Await a promise before going on. */
  slice(buffer: Uint8Array): true | Promise<void>;
  /**
   * Sends a message with its whole payload, in parts of at most SEND_WINDOW_BYTES that leave in one write. Await a
   * promise before going on.
   */
  whole(init: MessageInitShape<D>, parts: readonly Uint8Array[]): true | Promise<void>;
  /** Sends bytes of messages that another thread has framed. */
  framed(buffer: Uint8Array): true | Promise<void>;
  /** Counts payload of the message that the thread of the connection has sent (`CallContext.link`). */
  sentElsewhere(byteCount: number): void;
}

/** A client-stream handler in the sliced form. */
export interface SlicedClientStream<I extends DescMessage, O extends DescMessage> {
  readonly sliced: "requests";
  readonly fieldPath: string;
  readonly handler: (requests: SlicedSource<I>, context: CallContext) => MaybePromise<MessageInitShape<O>>;
}

/** A server-stream handler in the sliced form; the call ends when it returns. */
export interface SlicedServerStream<I extends DescMessage, O extends DescMessage> {
  readonly sliced: "responses";
  readonly fieldPath: string;
  readonly handler: (
    request: MessageShape<I>,
    context: CallContext,
    writer: SlicedWriter<O>,
  ) => Promise<void>;
}

/**
 * Declares a client-stream method whose requests end in the bytes field `fieldPath`, such as "chunk.data".
 */
export const slicedClientStream = <I extends DescMessage, O extends DescMessage>(
  fieldPath: string,
  handler: SlicedClientStream<I, O>["handler"],
): SlicedClientStream<I, O> => ({ sliced: "requests", fieldPath, handler });

/** Declares a server-stream method whose responses end in the bytes field `fieldPath`. */
export const slicedServerStream = <I extends DescMessage, O extends DescMessage>(
  fieldPath: string,
  handler: SlicedServerStream<I, O>["handler"],
): SlicedServerStream<I, O> => ({ sliced: "responses", fieldPath, handler });

/** Counted per waiting slice besides its bytes, so that a payload in frames of one byte fills the queue too. */
const SLICE_OVERHEAD_BYTES = 256;

interface Payload {
  slices: Buffer[];
  isWhole: boolean;
}

interface WaitingPart<D extends DescMessage> {
  readonly message: MessageShape<D>;
  readonly payloadBytes: number;
  readonly payload: Payload;
}

/** The inbox of the sliced form. Compressed messages, and those without the field last, come as one slice. */
export class SlicedInbox<D extends DescMessage> extends Inbox<SlicedMessage<D>> implements SlicedSource<D> {
  readonly #desc: D;
  readonly #field: SlicedField<D>;
  readonly #deframer: Deframer;
  readonly #wholes: WholeBodies;
  readonly #waiting: (WaitingPart<D> | WaitingBody)[] = [];
  /** The payload that receives slices now; undefined while the beginning of a message is scanned. */
  #filling: Payload | undefined;
  /** The consumer's current payload, dropped when it asks for the next message. */
  #reading: Payload | undefined;
  /** Takes slices of the current payload as they come; undefined while it is busy, and where they are pulled. */
  #taker: SliceTaker | undefined;
  /** Its work on the last slice. */
  #taking: Promise<void> | undefined;
  #mode: "prefix" | "payload" | "whole" = "prefix";
  #bodyBytes = 0;
  #prefix: GrowingBytes | undefined;
  #scanned = new ScanPlace();

  constructor(desc: D, field: SlicedField<D>, deps: InboxDeps) {
    super(deps);
    this.#desc = desc;
    this.#field = field;
    this.#wholes = new WholeBodies(deps.budget, (body, compressed) => {
      this.holdBody(body);
      this.#waiting.push({ body, compressed });
      this.wake();
    });
    const receiver = {
      begin: (bodyBytes: number, compressed: boolean): void => this.#begin(bodyBytes, compressed),
      part: (slice: Buffer, last: boolean): void => this.#part(slice, last),
    };
    this.#deframer = new Deframer(receiver, deps.limits.receiveMessageBytes);
  }

  override get isInsideMessage(): boolean {
    return this.#deframer.isInsideMessage;
  }

  override push(chunk: Buffer): void {
    this.#deframer.push(chunk);
  }

  override next(): SlicedMessage<D> | null | Promise<SlicedMessage<D> | null> {
    this.throwIfFailed();
    this.release();
    if (this.#reading !== undefined && !this.#discard(this.#reading) && !this.hasEnded()) {
      return this.changed().then(() => this.next());
    }
    this.#reading = undefined;
    const first = this.#waiting.shift();
    if (first === undefined) return this.hasEnded() ? null : this.changed().then(() => this.next());
    if ("payload" in first) {
      this.letGo(MESSAGE_OVERHEAD_BYTES);
      return this.#hand(first.message, first.payloadBytes, first.payload);
    }
    this.letGoBody(first.body);
    const decoded = decodeBody(this.#desc, first, this.deps.encoding, this.deps);
    return decoded instanceof Promise
      ? decoded.then((message) => this.#whole(message))
      : this.#whole(decoded);
  }

  protected override drop(): void {
    for (const one of this.#waiting.splice(0)) if ("body" in one) this.letGoBody(one.body);
    if (this.#reading !== undefined) this.#reading.slices = [];
    this.#wholes.release();
  }

  #whole(message: MessageShape<D>): SlicedMessage<D> {
    const bytes = this.#field.takePayload(message);
    const slice = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const slices = slice.length === 0 ? [] : [slice];
    for (const { length } of slices) this.hold(length + SLICE_OVERHEAD_BYTES);
    return this.#hand(message, slice.length, { slices, isWhole: true });
  }

  #hand(message: MessageShape<D>, payloadBytes: number, payload: Payload): SlicedMessage<D> {
    this.#reading = payload;
    return {
      message,
      payloadBytes,
      payload: { read: () => this.#read(payload), pour: (take) => this.#pour(payload, take) },
    };
  }

  async #pour(payload: Payload, take: SliceTaker): Promise<void> {
    for (;;) {
      this.throwIfFailed();
      const slice = payload.slices.shift();
      if (slice !== undefined) {
        this.letGo(slice.length + SLICE_OVERHEAD_BYTES);
        const taken = take(slice);
        if (taken !== true) await taken;
        continue;
      }
      if (payload.isWhole || payload !== this.#reading || this.hasEnded()) return;
      this.#taker = take;
      await this.changed();
      this.#taker = undefined;
      const taking = this.#taking;
      this.#taking = undefined;
      await taking;
    }
  }

  #read(payload: Payload): Buffer | null | Promise<Buffer | null> {
    this.throwIfFailed();
    const slice = payload.slices.shift();
    if (slice !== undefined) {
      this.letGo(slice.length + SLICE_OVERHEAD_BYTES);
      return slice;
    }
    if (payload.isWhole || payload !== this.#reading || this.hasEnded()) return null;
    return this.changed().then(() => this.#read(payload));
  }

  /** Drops the arrived bytes of a payload; true when they were the last. */
  #discard(payload: Payload): boolean {
    for (const slice of payload.slices) this.letGo(slice.length + SLICE_OVERHEAD_BYTES);
    payload.slices = [];
    return payload.isWhole;
  }

  #begin(bodyBytes: number, compressed: boolean): void {
    this.#bodyBytes = bodyBytes;
    this.#mode = compressed ? "whole" : "prefix";
    if (compressed) this.#wholes.begin(bodyBytes, true);
  }

  #part(slice: Buffer, last: boolean): void {
    if (this.#mode === "payload") this.#fill(slice, last);
    else if (this.#mode === "whole") this.#wholes.part(slice, last);
    else this.#look(slice, last);
  }

  #look(slice: Buffer, last: boolean): void {
    const bytes = this.#prefix?.add(slice) ?? slice;
    const found = this.#field.scan(bytes, this.#bodyBytes, this.#scanned);
    if (found === "more" && !last) {
      this.#prefix ??= new GrowingBytes(slice);
      return;
    }
    this.#prefix = undefined;
    this.#scanned = new ScanPlace();
    if (typeof found === "string") {
      this.#mode = "whole";
      this.#wholes.begin(this.#bodyBytes, false);
      this.#wholes.part(bytes, last);
      return;
    }
    this.#mode = "payload";
    this.#filling = { slices: [], isWhole: false };
    const message = this.#decode(bytes, found.cuts);
    const payloadBytes = this.#bodyBytes - found.payloadAt;
    this.#waiting.push({ message, payloadBytes, payload: this.#filling });
    this.hold(MESSAGE_OVERHEAD_BYTES);
    this.#fill(bytes.subarray(found.payloadAt), last);
  }

  #decode(bytes: Buffer, cuts: readonly number[]): MessageShape<D> {
    try {
      return this.#field.decode(bytes, cuts);
    } catch (cause) {
      throw new MalformedMessageError(`not a valid ${this.#desc.typeName}`, { cause });
    }
  }

  #fill(slice: Buffer, last: boolean): void {
    const payload = this.#filling as Payload;
    payload.isWhole = last;
    const take = payload === this.#reading ? this.#taker : undefined;
    if (take !== undefined && slice.length > 0) {
      const taken = take(slice);
      if (taken === true && !last) return;
      this.#taker = undefined;
      if (taken !== true) this.#taking = taken;
    } else if (slice.length > 0) {
      payload.slices.push(slice);
      this.hold(slice.length + SLICE_OVERHEAD_BYTES);
    }
    this.wake();
  }
}

/** The way of slices to the peer. */
export type SliceOutlet = Pick<SendQueue, "isWritable" | "stalledMs" | "whenWritable" | "write" | "writeAll">;

/** The sending half of the sliced form. It counts bytes, so that each message has its declared number. */
export class SlicedSendQueue<D extends DescMessage> implements SlicedWriter<D> {
  readonly #field: SlicedField<D>;
  readonly #outlet: SliceOutlet;
  readonly #maxBytes: number;
  readonly #beforeFirst: () => void;
  #leftBytes = 0;
  #begun = false;

  /** `beforeFirst` runs once, before the first byte, to send the headers. */
  constructor(field: SlicedField<D>, outlet: SliceOutlet, maxBytes: number, beforeFirst: () => void) {
    this.#field = field;
    this.#outlet = outlet;
    this.#maxBytes = maxBytes;
    this.#beforeFirst = beforeFirst;
  }

  get isWritable(): boolean {
    return this.#outlet.isWritable;
  }

  get stalledMs(): number {
    return this.#outlet.stalledMs;
  }

  whenWritable(timeoutMs?: number): Promise<boolean> {
    return this.#outlet.whenWritable(timeoutMs);
  }

  message(init: MessageInitShape<D>, payloadBytes: number): true | Promise<void> {
    const head = this.#headOf(init, payloadBytes);
    this.#leftBytes = payloadBytes;
    return this.#outlet.write(head);
  }

  whole(init: MessageInitShape<D>, parts: readonly Uint8Array[]): true | Promise<void> {
    const head = this.#headOf(
      init,
      parts.reduce((sum, { length }) => sum + length, 0),
    );
    return this.#outlet.writeAll([head, ...parts]);
  }

  #headOf(init: MessageInitShape<D>, payloadBytes: number): Buffer {
    this.finish();
    const head = this.#field.encode(init, payloadBytes);
    if (head.length + payloadBytes > this.#maxBytes) {
      throw new StatusError(
        Code.RESOURCE_EXHAUSTED,
        `message is larger than the limit of ${this.#maxBytes} bytes`,
      );
    }
    this.#begin();
    return head;
  }

  slice(buffer: Uint8Array): true | Promise<void> {
    if (buffer.length > this.#leftBytes) throw new RangeError("more payload than the message announced");
    this.#leftBytes -= buffer.length;
    return this.#outlet.write(buffer);
  }

  framed(buffer: Uint8Array): true | Promise<void> {
    this.#begin();
    return this.#outlet.write(buffer);
  }

  sentElsewhere(byteCount: number): void {
    if (byteCount > this.#leftBytes) throw new RangeError("more payload than the message announced");
    this.#leftBytes -= byteCount;
  }

  /** Throws RangeError when the last message is incomplete, since the stream then cannot end well. */
  finish(): void {
    if (this.#leftBytes > 0)
      throw new RangeError(`${this.#leftBytes} payload bytes of the message are missing`);
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#beforeFirst();
  }
}
