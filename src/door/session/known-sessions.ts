// Browsers' sessions that a door has judged: right ones pass beside a network's guesses, wrong ones count once.
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import { tooManyFromNetwork } from "#door/http/network-refusal.ts";

/** Secrets that were wrong, from one network in the window below. */
export const UNKNOWN_SESSIONS_PER_NETWORK = 60;
/** The window of the limit above. */
const UNKNOWN_SESSIONS_WINDOW_MS: number = 5 * 60_000;
/** Sessions that were right lately, and secrets that were wrong. */
const SESSIONS_KEPT = 4_096;

/** The sessions that one door knows, by the fingerprints of their secrets. */
export class KnownSessions {
  readonly #guesses: SlidingWindow;
  readonly #right = new LRUCache<string, true>(atMost(SESSIONS_KEPT));
  /** Browsers were told to drop them, so they are not asked about again. */
  readonly #wrong = new LRUCache<string, true>(atMost(SESSIONS_KEPT));

  constructor(clock: Clock) {
    this.#guesses = new SlidingWindow(clock, {
      count: UNKNOWN_SESSIONS_PER_NETWORK,
      windowMs: UNKNOWN_SESSIONS_WINDOW_MS,
    });
  }

  /** This door has just opened one, which nobody guesses. */
  opened(secret: string): void {
    this.#right.set(fingerprint(secret), true);
  }

  /**
   * Asks about a session and remembers the answer. Throws as `ask` does, TOKEN_REJECTED for a secret that is known to
   * be wrong, and RATE_LIMITED for an unknown one from a network with too many wrong ones.
   */
  async judge<T>(secret: string, address: string, ask: () => Promise<T>): Promise<T> {
    const print = fingerprint(secret);
    if (this.#wrong.has(print)) throw new GroveError("TOKEN_REJECTED", "this sign-in has ended");
    // A neighbour's wrong ones do not shut out who is signed in.
    const waitMs = this.#right.has(print) ? 0 : this.#guesses.waitMs(address);
    if (waitMs > 0) throw tooManyFromNetwork("wrong sessions", waitMs);
    try {
      const answer = await ask();
      this.#right.set(print, true);
      return answer;
    } catch (error) {
      if (isGroveError(error, "TOKEN_REJECTED")) this.#countWrong(print, address);
      throw error;
    }
  }

  /** A page sends many requests at once with its session, which are one guess. */
  #countWrong(print: string, address: string): void {
    if (!this.#wrong.has(print)) this.#guesses.count(address);
    this.#wrong.set(print, true);
    this.#right.delete(print);
  }
}

function fingerprint(secret: string): string {
  return createHash("sha256").update(secret).digest("base64");
}
