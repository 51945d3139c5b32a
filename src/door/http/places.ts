// Places for requests: so many at once, so many of each user, the rest wait in turn.
import { GroveError } from "#base/errors.ts";
import { FairQueue } from "#base/fair-queue.ts";

/** How many places there are. */
export interface PlaceLimits {
  readonly total: number;
  readonly perParty: number;
  readonly waiting: number;
  readonly waitingPerParty: number;
}

/** Who takes a place. */
export interface Asker {
  /** Ends a wait; asked for where there is one. */
  readonly gone: AbortSignal;
}

/** Who has work done in a place. */
interface Client extends Asker {
  /** Calls back once the client is gone; at once where it is. */
  whenGone(end: () => void): void;
}

interface Waiting {
  readonly party: string;
  readonly enter: (leave: () => void) => void;
}

/** Places that parties take and leave; those that wait are served in turn. */
export class Places {
  readonly #limits: PlaceLimits;
  readonly #queue = new FairQueue<Waiting>();
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  /** Places in use. */
  get used(): number {
    return this.#total;
  }

  /** Parties that wait. */
  get waiting(): number {
    return this.#queue.size;
  }

  /**
   * Resolves with the function that leaves the place again. Throws RATE_LIMITED where too many wait, and when the
   * asker's signal ends the wait.
   */
  async take(party: string, asker: Asker): Promise<() => void> {
    if (this.#fits(party)) return this.#enter(party);
    const signal = asker.gone;
    if (signal.aborted) throw gone();
    const { waiting, waitingPerParty } = this.#limits;
    if (this.#queue.sizeOf(party) >= waitingPerParty || this.#queue.size >= waiting) {
      throw new GroveError("RATE_LIMITED", "too many requests wait already: try again in a few seconds");
    }
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const entry: Waiting = { party, enter: resolve };
    const onAbort = (): void => {
      if (this.#queue.remove(party, entry)) reject(gone());
    };
    this.#queue.push(party, entry);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /**
   * Does work in a place. The place is left when the work has ended and its client is gone: what is still done for
   * clients that went counts as much as for those that stay. Throws as `take` does, and as the work does.
   */
  async run<T>(party: string, client: Client, work: () => Promise<T>): Promise<T> {
    const leave = await this.take(party, client);
    try {
      return await work();
    } finally {
      client.whenGone(leave);
    }
  }

  #fits(party: string): boolean {
    return this.#total < this.#limits.total && (this.#held.get(party) ?? 0) < this.#limits.perParty;
  }

  #enter(party: string): () => void {
    this.#total++;
    this.#held.set(party, (this.#held.get(party) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#leave(party);
    };
  }

  #leave(party: string): void {
    this.#total--;
    const left = (this.#held.get(party) ?? 1) - 1;
    if (left === 0) this.#held.delete(party);
    else this.#held.set(party, left);
    const next = this.#queue.shift((waiting) => this.#fits(waiting.party));
    next?.enter(this.#enter(next.party));
  }
}

function gone(): GroveError {
  return new GroveError("SESSION_MISSING", "the connection is gone");
}
