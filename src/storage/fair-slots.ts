// Lets a bounded number of operations run at once, and those who wait in turns of their users, so that nobody waits behind another's many.
import { GroveError } from "#base/errors.ts";

/** How long a user who has too much waiting is asked to wait before the next try. */
const RETRY_AFTER_MS = 1_000;

/** Bounds of the slots. */
export interface FairSlotsOptions {
  /** What runs in them, in a refusal's words: "copies". */
  readonly what: string;
  readonly slots: number;
  /** Slots that one user may have at once. */
  readonly slotsPerUser: number;
  /** Operations that may wait, of all users. */
  readonly waiting: number;
  /** Those of one user. */
  readonly waitingPerUser: number;
}

interface User {
  readonly name: string;
  running: number;
  readonly line: (() => void)[];
}

/** So many operations at once. A user's own run in the order of their coming. */
export class FairSlots {
  readonly #options: FairSlotsOptions;
  /** Those who run or wait for something. */
  readonly #users = new Map<string, User>();
  /** Those who wait, whose turn it is first. */
  readonly #turns = new Set<User>();
  #running = 0;
  #waiting = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
  }

  /** True when nothing runs and nothing waits. */
  get isIdle(): boolean {
    return this.#users.size === 0;
  }

  /**
   * Runs the operation as soon as it is its turn. Throws RATE_LIMITED when too much of this user waits, OVERLOADED when too much of all
   * does, and the signal's reason when that aborts before the turn has come.
   */
  async run<T>(name: string, operation: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const user = this.#users.get(name) ?? { name, running: 0, line: [] };
    if (this.#mayRun(user)) this.#begin(user);
    else await this.#turnOf(user, signal);
    try {
      return await operation();
    } finally {
      this.#end(user);
    }
  }

  #mayRun({ running }: User): boolean {
    return this.#running < this.#options.slots && running < this.#options.slotsPerUser;
  }

  #begin(user: User): void {
    this.#users.set(user.name, user);
    user.running++;
    this.#running++;
  }

  #turnOf(user: User, signal: AbortSignal | undefined): Promise<void> {
    const { what, waiting, waitingPerUser } = this.#options;
    if (user.line.length >= waitingPerUser) {
      throw new GroveError(
        "RATE_LIMITED",
        `you have ${waitingPerUser} ${what} waiting; wait for some of them`,
        {
          metadata: { retry_after_ms: String(RETRY_AFTER_MS), limit: String(waitingPerUser) },
        },
      );
    }
    if (this.#waiting >= waiting) throw new GroveError("OVERLOADED", `too many ${what} wait; try again`);
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        user.line.splice(user.line.indexOf(begin), 1);
        this.#waiting--;
        this.#forget(user);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#users.set(user.name, user);
      user.line.push(begin);
      this.#turns.add(user);
      this.#waiting++;
    });
  }

  #end(user: User): void {
    user.running--;
    this.#running--;
    // No more users are passed over than have slots.
    for (const next of this.#turns) {
      if (!this.#mayRun(next)) continue;
      const begin = next.line.shift();
      this.#waiting--;
      this.#begin(next);
      // Behind all others who wait.
      this.#turns.delete(next);
      if (next.line.length > 0) this.#turns.add(next);
      begin?.();
      break;
    }
    this.#forget(user);
  }

  #forget(user: User): void {
    if (user.line.length === 0) this.#turns.delete(user);
    if (user.line.length === 0 && user.running === 0) this.#users.delete(user.name);
  }
}
