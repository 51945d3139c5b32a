// Operators' changes of users: those of one user one after another, and no more than some at once.
import { ProblemError } from "#console/http/route.ts";

/** Changes under way or waiting, of quotas or of the right to sign in; more are answered RATE_LIMITED. */
export const USER_CHANGES_AT_ONCE = 64;

/** The changes of one kind. Each begins from what the one before has left, so that none undoes another. */
export class UserChanges {
  readonly #what: string;
  readonly #last = new Map<string, Promise<unknown>>();
  #atOnce = 0;

  /** `what` is changed, in the plural. */
  constructor(what: string) {
    this.#what = what;
  }

  /** Runs a change after those of the same user. Throws ProblemError RATE_LIMITED. */
  async run<T>(username: string, change: () => Promise<T>): Promise<T> {
    if (this.#atOnce >= USER_CHANGES_AT_ONCE) {
      throw new ProblemError("RATE_LIMITED", `too many ${this.#what} are being changed; try again`, {
        retryAfterSeconds: 1,
      });
    }
    this.#atOnce++;
    const before = this.#last.get(username) ?? Promise.resolve();
    const mine = before.then(change, change);
    this.#last.set(username, mine);
    try {
      return await mine;
    } finally {
      this.#atOnce--;
      if (this.#last.get(username) === mine) this.#last.delete(username);
    }
  }
}
