// Limits a connection's concurrent large replies, so that one client's calls do not delay another's.
import { BULKY_CALLS_AT_ONCE } from "#wire/framing/limits.ts";

/** The turns of one connection; its open streams bound the waiting ones. */
export class ReplyScheduler {
  #taken = 0;
  #isScheduled = false;
  readonly #waiting: (() => void)[] = [];

  /**
   * Runs a function now, or when earlier turns have ended. Its own turn ends once: when its handler is done
   * and its reply taken or given up.
   */
  take(run: () => void): void {
    this.#waiting.push(run);
    this.#next();
  }

  /** Ends a turn. With its connection all calls end one after another, and none gets a turn in between. */
  give(): void {
    this.#taken--;
    this.#later();
  }

  #later(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#next();
    });
  }

  /** Runs few at a time: small replies end their turns at once, and many would hold the loop. */
  #next(): void {
    for (let begun = 0; this.#taken < BULKY_CALLS_AT_ONCE; begun++) {
      if (begun === BULKY_CALLS_AT_ONCE) return this.#later();
      const run = this.#waiting.shift();
      if (run === undefined) return;
      this.#taken++;
      run();
    }
  }
}

/** One call's turn. */
export class ReplyTurn {
  readonly #scheduler: ReplyScheduler;
  #isHeld = false;

  constructor(scheduler: ReplyScheduler) {
    this.#scheduler = scheduler;
  }

  /** Runs a function in the turn. */
  take(run: () => void): void {
    this.#scheduler.take(() => {
      this.#isHeld = true;
      run();
    });
  }

  /** Ends the turn, if it is held. */
  give(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#scheduler.give();
  }
}
