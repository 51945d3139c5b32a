// Runs a bounded number of operations at once, round-robin over users, so that no user waits behind another's
// many.
import { GroveError } from "#base/errors.ts";
import { FairQueue } from "#base/fair-queue.ts";

/** Retry delay in the refusal of a user who has too many operations waiting. */
const RETRY_AFTER_MS = 1_000;

/** Bounds of the slots. */
export interface FairSlotsOptions {
  /** The operations' name in a refusal: "copies". */
  readonly what: string;
  readonly slots: number;
  /** Slots that one user may have at once; default: all. */
  readonly slotsPerUser?: number;
  /** Operations of all users that may wait; unlimited by default, for callers that bound themselves. */
  readonly waiting?: number;
  /** Operations of one user that may wait. */
  readonly waitingPerUser?: number;
}

interface Waiting {
  readonly user: string;
  readonly begin: () => void;
}

/** Bounded slots. A user's operations run in the order of arrival; "" stands for the node's own. */
export class FairSlots {
  readonly #options: Required<FairSlotsOptions>;
  /** Operations under way by user. */
  readonly #runningOf = new Map<string, number>();
  readonly #line = new FairQueue<Waiting>();
  #running = 0;

  constructor(options: FairSlotsOptions) {
    const { slots } = options;
    const unbounded = Number.POSITIVE_INFINITY;
    this.#options = { slotsPerUser: slots, waiting: unbounded, waitingPerUser: unbounded, ...options };
  }

  /** True when nothing runs and nothing waits. */
  get isIdle(): boolean {
    return this.#running === 0 && this.#line.size === 0;
  }

  /**
   * Runs the operation at its turn. Throws RATE_LIMITED when too much of this user waits, OVERLOADED when too
   * much of all users does. Throws the signal's reason when that aborts before the turn.
   */
  async run<T>(user: string, operation: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#mayRun(user)) this.#begin(user);
    else await this.#turnOf(user, signal);
    try {
      return await operation();
    } finally {
      this.#end(user);
    }
  }

  #mayRun(user: string): boolean {
    const own = this.#runningOf.get(user) ?? 0;
    return this.#running < this.#options.slots && own < this.#options.slotsPerUser;
  }

  #begin(user: string): void {
    this.#runningOf.set(user, (this.#runningOf.get(user) ?? 0) + 1);
    this.#running++;
  }

  #turnOf(user: string, signal: AbortSignal | undefined): Promise<void> {
    const { what, waiting, waitingPerUser } = this.#options;
    if (this.#line.sizeOf(user) >= waitingPerUser) {
      throw new GroveError(
        "RATE_LIMITED",
        `you have ${waitingPerUser} ${what} waiting; wait for some of them`,
        {
          metadata: { retry_after_ms: String(RETRY_AFTER_MS), limit: String(waitingPerUser) },
        },
      );
    }
    if (this.#line.size >= waiting) throw new GroveError("OVERLOADED", `too many ${what} wait; try again`);
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const own: Waiting = { user, begin };
      const leave = (): void => {
        this.#line.remove(user, own);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#line.push(user, own);
    });
  }

  #end(user: string): void {
    const left = (this.#runningOf.get(user) ?? 0) - 1;
    if (left > 0) this.#runningOf.set(user, left);
    else this.#runningOf.delete(user);
    this.#running--;
    // At most as many users are passed over as have slots.
    const next = this.#line.shift((each) => this.#mayRun(each.user));
    if (next === undefined) return;
    this.#begin(next.user);
    next.begin();
  }
}
