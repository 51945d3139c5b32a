// The roots that others share with a person, as a MetaServer told them a few seconds ago.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { isClientError } from "#client/terminal/client-error.ts";
import type { Person, SharedRoot } from "./person.ts";

/** How long the list of shared roots is used; every access is decided by the FileServer itself. */
const SHARES_KEPT_MS = 5_000;

/** The shared roots of one person. */
export class KnownShares {
  readonly #person: Person;
  readonly #clock: Pick<Clock, "steadyMs">;
  #shares: { readonly atMs: number; readonly roots: Promise<readonly SharedRoot[]> } | undefined;
  #lastShares: readonly SharedRoot[] = [];

  constructor(person: Person, clock: Pick<Clock, "steadyMs">) {
    this.#person = person;
    this.#clock = clock;
  }

  roots(): Promise<readonly SharedRoot[]> {
    const nowMs = this.#clock.steadyMs();
    if (this.#shares === undefined || nowMs - this.#shares.atMs > SHARES_KEPT_MS) {
      this.#shares = { atMs: nowMs, roots: this.#ask() };
    }
    return this.#shares.roots;
  }

  /** While no MetaServer answers, the person's own files and the shares known so far are still there. */
  async #ask(): Promise<readonly SharedRoot[]> {
    try {
      this.#lastShares = await this.#person.sharedRoots();
    } catch (error) {
      if (!isPassing(error)) throw error;
    }
    return this.#lastShares;
  }
}

function isPassing(error: unknown): boolean {
  return (
    isClientError(error, "NETWORK") ||
    isGroveError(error, "STORE_UNAVAILABLE", "IDP_UNAVAILABLE", "OVERLOADED", "RATE_LIMITED")
  );
}
