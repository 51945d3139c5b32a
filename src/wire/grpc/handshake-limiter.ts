// Limits the rate of new connections before TLS, since a handshake costs the server more than its client.
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { widerNetworkOf } from "#base/network.ts";
import { TokenBuckets } from "#base/token-buckets.ts";
import {
  HANDSHAKES_OF_ALL,
  HANDSHAKES_OF_NETWORK,
  HANDSHAKES_OF_SITE,
  PLAIN_HANDSHAKE_COST,
  PROVEN_HANDSHAKE_COST,
  PROVEN_NETWORK_MS,
  PROVEN_NETWORKS_KEPT,
} from "#wire/framing/limits.ts";

/** The part of the wider budgets reserved for networks that connect seldom or are proven. */
const KEPT_FROM_BUSY = 0.5;
const KEPT_FROM_NEW = 0.1;
/** A network with this part of its own budget left connects seldom. */
const SELDOM = 0.98;
const ALL = "";

/** The limiter of one listener. */
export class HandshakeLimiter {
  readonly #costs: number;
  readonly #ofNetwork: TokenBuckets;
  readonly #ofSite: TokenBuckets;
  readonly #ofAll: TokenBuckets;
  /** Networks with a recently proven caller. */
  readonly #proven: LRUCache<string, true>;

  constructor(clock: Clock, isEncrypted: boolean) {
    this.#costs = isEncrypted ? 1 : PLAIN_HANDSHAKE_COST;
    this.#ofNetwork = new TokenBuckets(clock, HANDSHAKES_OF_NETWORK);
    this.#ofSite = new TokenBuckets(clock, HANDSHAKES_OF_SITE);
    this.#ofAll = new TokenBuckets(clock, HANDSHAKES_OF_ALL);
    this.#proven = new LRUCache({
      ...atMost(PROVEN_NETWORKS_KEPT),
      ttl: PROVEN_NETWORK_MS,
      perf: { now: () => clock.steadyMs() },
    });
  }

  /** Whether a connection may begin; if so, it counts as begun. */
  mayBegin({ address, network }: { readonly address: string; readonly network: string }): boolean {
    const isProven = this.isProven(network);
    const cost = this.#costs * (isProven ? PROVEN_HANDSHAKE_COST : 1);
    const isSeldom = this.#ofNetwork.level(network) >= SELDOM;
    if (!this.#ofNetwork.takeKeeping(network, cost, 0)) return false;
    const keep = isProven ? 0 : isSeldom ? KEPT_FROM_NEW : KEPT_FROM_BUSY;
    return (
      this.#ofSite.takeKeeping(widerNetworkOf(address), cost, keep) &&
      this.#ofAll.takeKeeping(ALL, cost, keep)
    );
  }

  /** Whether the network has a recently proven caller. */
  isProven(network: string): boolean {
    return this.#proven.has(network);
  }

  /** Records a proven caller of the network. */
  proved(network: string): void {
    this.#proven.set(network, true);
  }
}
