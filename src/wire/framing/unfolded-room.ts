// Room for what a call has unfolded: few compressed bytes may become megabytes, which wait for the handler.
import type { MessageBytes } from "./frames.ts";
import { SMALL_MESSAGE_BYTES } from "./limits.ts";
import { Code, StatusError } from "./status.ts";

/**
 * Counts the message that a call has unfolded last, until its consumer asks for the next one or the call ends. The
 * budget is another one than that of bodies in collection: those that wait here hold some of it.
 */
export class UnfoldedRoom {
  readonly #budget: MessageBytes;
  #takenBytes = 0;
  #stopWaiting: (() => void) | undefined;

  constructor(budget: MessageBytes) {
    this.#budget = budget;
  }

  /** Takes room for a message, parties in turn; rejects with CANCELLED where the call ends before. */
  take(bytes: number): true | Promise<void> {
    this.release();
    if (bytes <= SMALL_MESSAGE_BYTES || this.#budget.claim === undefined) return true;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = this.#budget.claim(bytes, () => {
      this.#stopWaiting = undefined;
      this.#takenBytes = bytes;
      resolve();
    });
    if (stop === undefined) {
      this.#takenBytes = bytes;
      return true;
    }
    this.#stopWaiting = () => {
      stop();
      reject(new StatusError(Code.CANCELLED, "the call has ended"));
    };
    return promise;
  }

  /** Gives the room back, or waits no longer for it. */
  release(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    this.#budget.give(this.#takenBytes);
    this.#takenBytes = 0;
  }
}

/** The room of a call; undefined where nothing may come compressed. */
export function roomFor(encoding: string, budget: MessageBytes): UnfoldedRoom | undefined {
  return encoding === "identity" ? undefined : new UnfoldedRoom(budget);
}
