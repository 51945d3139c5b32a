// Counts the open streams of each user and refuses those above the limit (D17).
import { GroveError } from "#base/errors.ts";

/** Delay that a refused client is asked to wait before it tries again. */
const RETRY_AFTER_MS = 1_000;

/** Slots of one kind of stream. An entry lives only while its user has streams open. */
export class StreamSlots {
  readonly #perUser: number;
  readonly #open = new Map<string, number>();

  constructor(perUser: number) {
    this.#perUser = perUser;
  }

  /** Runs a stream in one of the user's slots. Throws RATE_LIMITED when all are taken. */
  async run<T>(username: string, stream: () => Promise<T>): Promise<T> {
    const open = this.#open.get(username) ?? 0;
    if (open >= this.#perUser) {
      throw new GroveError(
        "RATE_LIMITED",
        `at most ${this.#perUser} streams of this kind at once for one user`,
        {
          metadata: { retry_after_ms: String(RETRY_AFTER_MS) },
        },
      );
    }
    this.#open.set(username, open + 1);
    try {
      return await stream();
    } finally {
      const left = (this.#open.get(username) ?? 1) - 1;
      if (left === 0) this.#open.delete(username);
      else this.#open.set(username, left);
    }
  }
}
