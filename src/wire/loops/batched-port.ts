// Posts messages to another thread, all of one turn of the event loop at once: each post costs microseconds.

import { type Clock, systemClock } from "#base/clock.ts";

/** The end of a channel between threads. */
export interface Port {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
}

/** Longest wait of a message that may wait. */
const LATER_MS = 25;

/** Collects messages until the turn ends. Their order stays. */
export class BatchedPort<M> {
  readonly #port: Port;
  #batch: M[] = [];
  #transfer: ArrayBuffer[] = [];
  #isClosed = false;
  #turn = 0;
  #isUrgent = false;
  #stopTimer: (() => void) | undefined;
  readonly #clock: Clock;

  constructor(port: Port, clock: Clock = systemClock) {
    this.#port = port;
    this.#clock = clock;
  }

  /** The number of the batch at hand: its messages can still be changed. */
  get turn(): number {
    return this.#turn;
  }

  /** Sends a message; buffers in `transfer` are gone from this thread. */
  post(message: M, transfer?: readonly ArrayBuffer[]): void {
    if (this.#isClosed) return;
    if (!this.#isUrgent) {
      this.#isUrgent = true;
      setImmediate(this.#flush);
    }
    this.#batch.push(message);
    if (transfer !== undefined) this.#transfer.push(...transfer);
  }

  /** Sends a message with the next that is posted, or some milliseconds later. */
  postLater(message: M): void {
    if (this.#isClosed) return;
    if (this.#batch.length === 0) this.#stopTimer ??= this.#clock.after(LATER_MS, this.#flush);
    this.#batch.push(message);
  }

  /** Transfers buffers that a message of the batch at hand got later. */
  transfer(buffers: readonly ArrayBuffer[]): void {
    this.#transfer.push(...buffers);
  }

  /** Drops all further messages: the other thread has ended. */
  close(): void {
    this.#isClosed = true;
    this.#stopTimer?.();
    this.#batch = [];
    this.#transfer = [];
  }

  readonly #flush = (): void => {
    const batch = this.#batch;
    const transfer = this.#transfer;
    this.#batch = [];
    this.#transfer = [];
    this.#turn++;
    this.#isUrgent = false;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (batch.length > 0) this.#port.postMessage(batch, transfer);
  };
}

/** Bytes on their way between threads. A string holds one byte in each character, and costs less than an array. */
export type CrossingBytes = string | Uint8Array;

/** Bytes that may cross threads, and what to transfer with them: a part of a buffer is copied out. */
export function bytesToCross(bytes: Uint8Array): {
  readonly bytes: CrossingBytes;
  readonly transfer: readonly ArrayBuffer[] | undefined;
} {
  const { buffer, byteOffset, byteLength } = bytes;
  if (byteLength <= STRING_BYTES) {
    return { bytes: Buffer.from(buffer, byteOffset, byteLength).toString("latin1"), transfer: undefined };
  }
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  const whole = isWhole ? bytes : Uint8Array.from(bytes);
  return {
    bytes: whole,
    transfer: byteLength >= TRANSFERRED_BYTES ? [whole.buffer as ArrayBuffer] : undefined,
  };
}

/** Bytes that have crossed threads. */
export function crossedBytes(bytes: CrossingBytes): Buffer {
  if (typeof bytes === "string") return Buffer.from(bytes, "latin1");
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Up to this size a string is cheaper. */
const STRING_BYTES = 8_192;
/** Smaller buffers are cheaper to copy than to transfer. */
const TRANSFERRED_BYTES = 16_384;
