// Runs transfers side by side, many small ones and few large ones, in order of arrival.
import { LARGE_TRANSFERS_IN_FLIGHT, SCAN_AHEAD_MAX, TRANSFERS_IN_FLIGHT } from "#client/terminal/limits.ts";

/** One transfer. It handles its own failure: a rejection stops the pool. */
export type Transfer = () => Promise<void>;

/** Bounds of a pool. */
export interface PoolLimits {
  readonly inFlight: number;
  readonly largeInFlight: number;
  /** Transfers that may wait. */
  readonly waiting: number;
}

/** The bounds of a command's transfers. */
export const POOL_LIMITS: PoolLimits = {
  inFlight: TRANSFERS_IN_FLIGHT,
  largeInFlight: LARGE_TRANSFERS_IN_FLIGHT,
  waiting: SCAN_AHEAD_MAX,
};

/** A first-in, first-out queue; shifting a long array is slow. */
class Queue {
  #items: Transfer[] = [];
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  push(item: Transfer): void {
    this.#items.push(item);
  }

  shift(): Transfer | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#first++;
    if (this.#first > 1_024 && this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}

/** The transfers of one command. */
export class TransferPool {
  readonly #limits: PoolLimits;
  readonly #onFailure: () => void;
  readonly #small = new Queue();
  readonly #large = new Queue();
  #running = 0;
  #largeRunning = 0;
  #failure: { readonly error: unknown } | undefined;
  #changed: PromiseWithResolvers<void> | undefined;

  /** `onFailure` is called when the first transfer fails, while others still run. */
  constructor(limits: PoolLimits = POOL_LIMITS, onFailure: () => void = () => undefined) {
    this.#limits = limits;
    this.#onFailure = onFailure;
  }

  /** True once a transfer has failed: no other is begun. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** Adds a transfer; await a promise before the next one. After a failure, throws it. */
  add(transfer: Transfer, size: "small" | "large"): true | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    (size === "large" ? this.#large : this.#small).push(transfer);
    this.#fill();
    return this.#waitingCount < this.#limits.waiting ? true : this.#room();
  }

  /** Resolves when all have ended; rejects with the first failure once the running ones have ended. */
  async done(): Promise<void> {
    while (this.#running + this.#largeRunning > 0) await this.#change();
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  get #waitingCount(): number {
    return this.#small.length + this.#large.length;
  }

  async #room(): Promise<void> {
    while (this.#waitingCount >= this.#limits.waiting && this.#failure === undefined) await this.#change();
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #fill(): void {
    while (this.#failure === undefined && this.#running < this.#limits.inFlight) {
      const next = this.#small.shift();
      if (next === undefined) break;
      this.#running++;
      void this.#run(next, () => this.#running--);
    }
    while (this.#failure === undefined && this.#largeRunning < this.#limits.largeInFlight) {
      const next = this.#large.shift();
      if (next === undefined) break;
      this.#largeRunning++;
      void this.#run(next, () => this.#largeRunning--);
    }
  }

  async #run(transfer: Transfer, ended: () => void): Promise<void> {
    try {
      await transfer();
    } catch (error) {
      const isFirst = this.#failure === undefined;
      this.#failure ??= { error };
      if (isFirst) this.#onFailure();
    }
    ended();
    this.#fill();
    const changed = this.#changed;
    this.#changed = undefined;
    changed?.resolve();
  }

  #change(): Promise<void> {
    this.#changed ??= Promise.withResolvers<void>();
    return this.#changed.promise;
  }
}
