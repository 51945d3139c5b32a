// Whose turn it is to make a large reply: a few calls of a connection at a time, so that one client's many do not hold up another's one.
import { BULKY_CALLS_AT_ONCE } from "#wire/framing/limits.ts";

/** The turns of one connection. Those who wait are bounded by the streams that it may have. */
export class ReplyScheduler {
  #taken = 0;
  readonly #waiting: (() => void)[] = [];

  /** Runs something now, or when those before have given their turns back; it gives its own back once, when its reply is taken or given up and nobody works on it. */
  take(run: () => void): void {
    this.#waiting.push(run);
    this.#next();
  }

  /** Ends a turn. When a connection ends all its calls do, one after the other: none of them is to have its turn in between. */
  give(): void {
    this.#taken--;
    if (this.#waiting.length > 0) setImmediate(() => this.#next());
  }

  #next(): void {
    while (this.#taken < BULKY_CALLS_AT_ONCE) {
      const run = this.#waiting.shift();
      if (run === undefined) return;
      this.#taken++;
      run();
    }
  }
}
