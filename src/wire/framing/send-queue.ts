// Outgoing bytes: bounds the bytes that an HTTP/2 stream holds at a time.
import type { Http2Stream } from "node:http2";
import type { Clock } from "#base/clock.ts";
import { waitAtMost } from "#base/waiting.ts";
import { SEND_WINDOW_BYTES } from "./limits.ts";
import type { StatusError } from "./status.ts";

/** The sending half of a call's stream. */
export class SendQueue {
  readonly #stream: Http2Stream;
  readonly #clock: Clock;
  #failure: StatusError | undefined;
  #waiters: (() => void)[] = [];
  /** When the first current waiter began to wait, or the peer last took something since. */
  #stalledSinceMs = 0;

  constructor(stream: Http2Stream, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
  }

  /** True when a write would not wait. */
  get isWritable(): boolean {
    return this.#stream.writableLength < SEND_WINDOW_BYTES;
  }

  /** True while a write waits for room. */
  get isWaiting(): boolean {
    return this.#waiters.length > 0;
  }

  /** How long the peer has taken nothing although bytes wait; 0 when none wait. */
  get stalledMs(): number {
    return this.isWaiting ? this.#clock.steadyMs() - this.#stalledSinceMs : 0;
  }

  /**
   * Sends bytes; the caller must not change the buffer afterwards. Await a promise before the next write; it
   * rejects when the call has ended.
   */
  write(buffer: Uint8Array): true | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (buffer.length > SEND_WINDOW_BYTES) return this.#writeInPieces(buffer);
    // All writes share the callback, which only checks the remaining bytes.
    this.#stream.write(buffer, this.#onWritten);
    return this.isWritable ? true : this.#wait();
  }

  /** The same for buffers of at most SEND_WINDOW_BYTES each that leave in one write, which wakes the peer once. */
  writeAll(buffers: readonly Uint8Array[]): true | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#stream.cork();
    for (const buffer of buffers) this.#stream.write(buffer, this.#onWritten);
    this.#stream.uncork();
    return this.isWritable ? true : this.#wait();
  }

  /**
   * Resolves to true once a write would not wait, to false after timeoutMs. Rejects when the call has ended.
   */
  async whenWritable(timeoutMs?: number): Promise<boolean> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.isWritable) return true;
    if (timeoutMs === undefined) {
      await this.#wait();
      return true;
    }
    await waitAtMost(this.#clock, timeoutMs, this.#wait());
    return this.isWritable;
  }

  /** Ends all waiting with an error: the call is over. */
  fail(error: StatusError): void {
    this.#failure ??= error;
    this.#wakeAll();
  }

  async #writeInPieces(buffer: Uint8Array): Promise<void> {
    for (let at = 0; at < buffer.length; at += SEND_WINDOW_BYTES) {
      const written = this.write(buffer.subarray(at, at + SEND_WINDOW_BYTES));
      if (written !== true) await written;
    }
  }

  #wait(): Promise<void> {
    if (this.#waiters.length === 0) this.#stalledSinceMs = this.#clock.steadyMs();
    return new Promise<void>((resolve) => {
      this.#waiters.push(resolve);
    }).then(() => {
      if (this.#failure !== undefined) throw this.#failure;
    });
  }

  readonly #onWritten = (error?: Error | null): void => {
    // A write fails when the stream closes, and then the call has the reason.
    if (error !== undefined && error !== null) return;
    if (this.#waiters.length === 0) return;
    this.#stalledSinceMs = this.#clock.steadyMs();
    if (this.isWritable) this.#wakeAll();
  };

  #wakeAll(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}
