// Holds off guesses of app passwords: few checks at once and few wrong ones from one network.
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { networkOf } from "#base/network.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import type { BasicCredentials } from "./basic-credentials.ts";
import {
  DOOR_CHECKS,
  DOOR_CHECKS_PER_NETWORK,
  DOOR_FAILURE_WINDOW_MS,
  DOOR_FAILURES_PER_NETWORK,
  DOOR_KNOWN_CREDENTIALS,
} from "./door-limits.ts";
import { tooManyFromNetwork } from "./network-refusal.ts";
import { type Asker, Places } from "./places.ts";

/** Counts checks and failures by network. Credentials that were right before pass a network that is shut. */
export class CredentialGate {
  readonly #failures: SlidingWindow;
  readonly #known = new LRUCache<string, true>(atMost(DOOR_KNOWN_CREDENTIALS));
  readonly #checks = new Places({
    total: DOOR_CHECKS,
    perParty: DOOR_CHECKS_PER_NETWORK,
    waiting: 8 * DOOR_CHECKS,
    waitingPerParty: 8 * DOOR_CHECKS_PER_NETWORK,
  });

  constructor(clock: Clock) {
    this.#failures = new SlidingWindow(clock, {
      count: DOOR_FAILURES_PER_NETWORK,
      windowMs: DOOR_FAILURE_WINDOW_MS,
    });
  }

  /** Runs a check of credentials. Throws RATE_LIMITED without one where the network has guessed too often. */
  async check<T>(
    credentials: BasicCredentials,
    address: string,
    asker: Asker,
    check: () => Promise<T>,
  ): Promise<T> {
    const isKnown = this.#known.has(credentials.fingerprint);
    const leave = isKnown ? undefined : await this.#enter(address, asker);
    try {
      const found = await check();
      this.#known.set(credentials.fingerprint, true);
      return found;
    } catch (error) {
      if (isGroveError(error, "TOKEN_REJECTED")) {
        this.#known.delete(credentials.fingerprint);
        this.#failures.count(address);
      }
      throw error;
    } finally {
      leave?.();
    }
  }

  async #enter(address: string, asker: Asker): Promise<() => void> {
    this.#requireOpen(address);
    const leave = await this.#checks.take(networkOf(address), asker);
    try {
      // Those that waited may have waited behind guesses.
      this.#requireOpen(address);
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
  }

  #requireOpen(address: string): void {
    const waitMs = this.#failures.waitMs(address);
    if (waitMs > 0) throw tooManyFromNetwork("wrong passwords", waitMs);
  }
}
