// How many bytes the client of a connection takes, by which its single replies are judged.
import { SEND_WINDOW_BYTES } from "#wire/framing/limits.ts";

/** Bytes after which each reply with an open window was sent some, for each call: it may just have missed two turns. */
const TURN_BYTES = 4 * SEND_WINDOW_BYTES;

/** The pace of one connection, from look to look. */
export class LinkPace {
  readonly #calls: { readonly size: number };
  #takenBytes = 0;
  /** When the client had last taken as much as one reply alone must, and its bytes at that time. */
  #tookWindowAtMs: number;
  #takenBefore = 0;

  /** `calls` share the connection. */
  constructor(calls: { readonly size: number }, nowMs: number) {
    this.#calls = calls;
    this.#tookWindowAtMs = nowMs;
  }

  /** All bytes that the client, or the kernel for it, has taken. */
  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** Notes the bytes that were taken so far; steady time. */
  look(takenBytes: number, nowMs: number): void {
    this.#takenBytes = takenBytes;
    if (takenBytes - this.#takenBefore < SEND_WINDOW_BYTES) return;
    this.#takenBefore = takenBytes;
    this.#tookWindowAtMs = nowMs;
  }

  /**
   * True while a reply that has sent nothing since so many bytes may only wait behind the others: within `stallMs` the
   * client takes what a single reply must, and they have not had a turn each since.
   */
  isSlow(sinceBytes: number, nowMs: number, stallMs: number): boolean {
    if (nowMs - this.#tookWindowAtMs > stallMs) return false;
    return this.#takenBytes - sinceBytes <= this.#calls.size * TURN_BYTES;
  }
}
