// Watches the numbers of other processes: who does not move for a lease, while the database answered, has
// ended.
import type { Clock } from "#base/clock.ts";
import { SHARED_LEASE_MS } from "./lease-holder.ts";

/** Interval of looks at the numbers. */
export const SHARED_WATCH_MS = 1_000;
/** A longer time between two answers counts as an outage: all numbers are watched anew. */
const GAP_MS = 2_500;

/** A running process's lease: its name, and the number that rises with each renewal. */
export interface SeenInstance {
  readonly id: string;
  readonly beat: number;
  /** How long its holder may count on it; the watcher's own by default. */
  readonly leaseMs?: number;
}

interface Watched {
  readonly beat: number;
  readonly sinceMs: number;
}

/** No other machine's clock counts, and no time in which the database was away. */
export class LeaseWatch {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #gapMs: number;
  #watched = new Map<string, Watched>();
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  #asleepMs = 0;

  constructor(clock: Clock, leaseMs: number = SHARED_LEASE_MS) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.#gapMs = leaseMs * (GAP_MS / SHARED_LEASE_MS);
  }

  /**
   * Asks once, and returns the processes whose number has not moved for the time of a lease. Rejects as `ask`
   * does.
   */
  async look(ask: () => Promise<readonly SeenInstance[]>): Promise<SeenInstance[]> {
    const { steadyMs: askedAtMs } = this.#now();
    const seen = await ask();
    const { steadyMs: answeredAtMs, asleepMs } = this.#now();
    // From the answer before to this one: time asleep, and time in which the database said nothing.
    const isGap = answeredAtMs - this.#answeredAtMs > this.#gapMs || asleepMs - this.#asleepMs > this.#gapMs;
    this.#answeredAtMs = answeredAtMs;
    this.#asleepMs = asleepMs;
    const before = isGap ? new Map<string, Watched>() : this.#watched;
    this.#watched = new Map(
      seen.map(({ id, beat }) => {
        const known = before.get(id);
        return [id, known?.beat === beat ? known : { beat, sinceMs: answeredAtMs }];
      }),
    );
    // Read at some moment after it was asked for, so that the time until then is certain.
    return seen.filter(
      ({ id, leaseMs = this.#leaseMs }) =>
        askedAtMs - (this.#watched.get(id)?.sinceMs ?? askedAtMs) >= leaseMs,
    );
  }

  #now(): { steadyMs: number; asleepMs: number } {
    const steadyMs = this.#clock.steadyMs();
    return { steadyMs, asleepMs: (this.#clock.bootMs?.() ?? steadyMs) - steadyMs };
  }
}
