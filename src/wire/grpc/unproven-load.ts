// Accounts for wasted work by unproven callers: refusals, frames without a call, abandoned calls.
import type { Clock } from "#base/clock.ts";
import { type BucketRate, TokenBuckets } from "#base/token-buckets.ts";
import { UNPROVEN_LOAD_OF_ALL, UNPROVEN_LOAD_OF_NETWORK } from "#wire/framing/limits.ts";

const ALL = "";
/** While all together are over budget, a network may use this part of its own. */
const SCARCE = 0.5;

/** Rates of the account. */
export interface UnprovenLoadRates {
  readonly ofNetwork: BucketRate;
  readonly ofAll: BucketRate;
}

const RATES: UnprovenLoadRates = { ofNetwork: UNPROVEN_LOAD_OF_NETWORK, ofAll: UNPROVEN_LOAD_OF_ALL };

/** The account of a server, in bytes; work without bytes has a fixed cost. */
export class UnprovenLoad {
  readonly #ofNetwork: TokenBuckets;
  readonly #ofAll: TokenBuckets;

  constructor(clock: Clock, { ofNetwork, ofAll }: UnprovenLoadRates = RATES) {
    this.#ofNetwork = new TokenBuckets(clock, ofNetwork);
    this.#ofAll = new TokenBuckets(clock, ofAll);
  }

  /** Counts work of a network; false when it is over its budget. */
  charge(network: string, bytes: number): boolean {
    this.#ofNetwork.charge(network, bytes);
    this.#ofAll.charge(ALL, bytes);
    return !this.isOver(network);
  }

  /** True while a network is over its budget, or over half of it while all together are over theirs. */
  isOver(network: string): boolean {
    return this.#ofNetwork.level(network) <= (this.#ofAll.level(ALL) <= 0 ? SCARCE : 0);
  }
}
