// Runs transfers side by side, many small ones and few large ones, in the order in which they may begin.
import {
  FOLDERS_IN_FLIGHT,
  LARGE_TRANSFERS_IN_FLIGHT,
  SCAN_AHEAD_MAX,
  TRANSFERS_IN_FLIGHT,
} from "#client/terminal/limits.ts";

/** One transfer. It handles its own failure: a rejection stops the pool. */
export type Transfer = () => Promise<void>;

/** The kinds of transfers, each with a number in progress of its own. */
export type Lane = "folder" | "small" | "large";

/** Bounds of a pool. */
export interface PoolLimits {
  readonly foldersInFlight: number;
  readonly inFlight: number;
  readonly largeInFlight: number;
  /** Transfers that may wait. */
  readonly waiting: number;
}

/** The bounds of a command's transfers. */
const POOL_LIMITS: PoolLimits = {
  foldersInFlight: FOLDERS_IN_FLIGHT,
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

/** Transfers of one kind. */
interface LaneState {
  readonly waiting: Queue;
  readonly most: number;
  running: number;
}

/** The transfers of one command. */
export class TransferPool {
  readonly #lanes: Readonly<Record<Lane, LaneState>>;
  readonly #waitingMost: number;
  /** Transfers that may not begin yet. */
  #held = 0;
  #failure: { readonly error: unknown } | undefined;
  #changed: PromiseWithResolvers<void> | undefined;

  constructor(limits: PoolLimits = POOL_LIMITS) {
    const lane = (most: number): LaneState => ({ waiting: new Queue(), most, running: 0 });
    this.#lanes = {
      folder: lane(limits.foldersInFlight),
      small: lane(limits.inFlight),
      large: lane(limits.largeInFlight),
    };
    this.#waitingMost = limits.waiting;
  }

  /** True once a transfer has failed: no other is begun. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /**
   * Adds a transfer; await a promise before the next one. After a failure, throws it. With `after` the
   * transfer takes no place among those in progress before that promise resolves; it must not reject.
   */
  add(transfer: Transfer, lane: Lane, after?: Promise<unknown>): true | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (after === undefined) this.#enter(transfer, lane);
    else {
      this.#held++;
      void after.then(() => {
        this.#held--;
        this.#enter(transfer, lane);
        this.#tell();
      });
    }
    return this.#waitingCount < this.#waitingMost ? true : this.#room();
  }

  /**
   * Resolves when all have ended; rejects with the first failure once the running ones have ended. Those that
   * may not begin yet then never do.
   */
  async done(): Promise<void> {
    while (this.#runningCount > 0 || (this.#held > 0 && this.#failure === undefined)) await this.#change();
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  get #runningCount(): number {
    const { folder, small, large } = this.#lanes;
    return folder.running + small.running + large.running;
  }

  get #waitingCount(): number {
    const { folder, small, large } = this.#lanes;
    return this.#held + folder.waiting.length + small.waiting.length + large.waiting.length;
  }

  async #room(): Promise<void> {
    while (this.#waitingCount >= this.#waitingMost && this.#failure === undefined) await this.#change();
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #enter(transfer: Transfer, name: Lane): void {
    const lane = this.#lanes[name];
    lane.waiting.push(transfer);
    this.#fill(lane);
  }

  #fill(lane: LaneState): void {
    while (this.#failure === undefined && lane.running < lane.most) {
      const next = lane.waiting.shift();
      if (next === undefined) break;
      lane.running++;
      void this.#run(next, lane);
    }
  }

  async #run(transfer: Transfer, lane: LaneState): Promise<void> {
    try {
      await transfer();
    } catch (error) {
      this.#failure ??= { error };
    }
    lane.running--;
    this.#fill(lane);
    this.#tell();
  }

  #tell(): void {
    const changed = this.#changed;
    this.#changed = undefined;
    changed?.resolve();
  }

  #change(): Promise<void> {
    this.#changed ??= Promise.withResolvers<void>();
    return this.#changed.promise;
  }
}
