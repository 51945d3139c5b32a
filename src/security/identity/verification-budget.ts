// Limits how often each address may have unknown ID tokens verified: failures count, sign-ins do not.
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { type ErrorCode, GroveError, isGroveError } from "#base/errors.ts";
import { RATE_LIMIT_ADDRESSES } from "#base/limits.ts";
import { networkOf, widerNetworkOf } from "#base/network.ts";
import { TokenBuckets } from "#base/token-buckets.ts";
import { type Origin, VerificationPlaces } from "./verification-places.ts";

/**
 * ID tokens of one address that the identity provider may refuse per minute; more unknown ones are answered
 * RATE_LIMITED.
 */
export const TOKEN_FAILURES_PER_MINUTE_PER_ADDRESS = 60;
/** The same for one network (IPv4 /24, IPv6 /48). */
export const TOKEN_FAILURES_PER_MINUTE_PER_NETWORK = 240;
/** The same for all together; beyond it only addresses with a sign-in within a day are served. */
const TOKEN_FAILURES_PER_MINUTE = 6_000;
/**
 * Verifications of one address per minute that may end without an answer: outages are not failures, but are
 * limited too.
 */
const TOKEN_OUTAGES_PER_MINUTE_PER_ADDRESS = 600;
/** How long an address keeps its status after a sign-in. */
const SIGNED_IN_ADDRESS_TTL_MS: number = 24 * 3_600_000;

/** The key of the shared bucket. */
const EVERYBODY = "";

/** The remaining verifications of each address, each network, and all together. */
export class VerificationBudget {
  readonly #places: VerificationPlaces;
  readonly #failures: {
    readonly address: TokenBuckets;
    readonly network: TokenBuckets;
    readonly all: TokenBuckets;
  };
  readonly #outages: TokenBuckets;
  /** Addresses with a sign-in. */
  readonly #signedIn: LRUCache<string, true>;

  constructor(clock: Clock) {
    const perMinute = (count: number): TokenBuckets =>
      new TokenBuckets(clock, { perSecond: count / 60, burst: count });
    this.#failures = {
      address: perMinute(TOKEN_FAILURES_PER_MINUTE_PER_ADDRESS),
      network: perMinute(TOKEN_FAILURES_PER_MINUTE_PER_NETWORK),
      all: perMinute(TOKEN_FAILURES_PER_MINUTE),
    };
    this.#outages = perMinute(TOKEN_OUTAGES_PER_MINUTE_PER_ADDRESS);
    this.#signedIn = new LRUCache({
      ...atMost(RATE_LIMIT_ADDRESSES),
      ttl: SIGNED_IN_ADDRESS_TTL_MS,
      perf: { now: () => clock.steadyMs() },
    });
    this.#places = new VerificationPlaces({ clock, isStranger: (address) => !this.#signedIn.has(address) });
  }

  /**
   * Runs a verification at its turn. Throws RATE_LIMITED when too many of the address or its network failed
   * lately, or wait; OVERLOADED when too many of all did. Both carry the time of the next try. Throws the
   * errors of the verification.
   */
  async run<T>(peerAddress: string, verify: () => Promise<T>): Promise<T> {
    const origin = { address: networkOf(peerAddress), network: widerNetworkOf(peerAddress) };
    this.#requireRest(origin);
    return this.#places.run(origin, async () => {
      // Earlier calls in the queue may have used the budget up.
      this.#requireRest(origin);
      try {
        const result = await verify();
        this.#signedIn.set(origin.address, true);
        return result;
      } catch (error) {
        this.#charge(origin, error);
        throw error;
      }
    });
  }

  #requireRest({ address, network }: Origin): void {
    const failures = this.#failures;
    refuseFor(
      failures.address.waitMs(address),
      "RATE_LIMITED",
      "too many refused sign-ins from this address",
    );
    refuseFor(
      failures.network.waitMs(network),
      "RATE_LIMITED",
      "too many refused sign-ins from this network",
    );
    refuseFor(this.#outages.waitMs(address), "RATE_LIMITED", "too many sign-ins from this address");
    if (this.#signedIn.has(address)) return;
    refuseFor(failures.all.waitMs(EVERYBODY), "OVERLOADED", "too many refused sign-ins");
  }

  #charge({ address, network }: Origin, error: unknown): void {
    if (!isGroveError(error, "TOKEN_REJECTED")) {
      this.#outages.take(address);
      return;
    }
    this.#failures.address.take(address);
    this.#failures.network.take(network);
    this.#failures.all.take(EVERYBODY);
  }
}

function refuseFor(waitMs: number, code: ErrorCode, problem: string): void {
  if (waitMs === 0) return;
  const seconds = Math.ceil(waitMs / 1_000);
  throw new GroveError(code, `${problem}; try again in ${seconds} second${seconds === 1 ? "" : "s"}`, {
    metadata: { retry_after_ms: String(waitMs) },
  });
}
