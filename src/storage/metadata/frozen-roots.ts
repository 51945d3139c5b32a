// Roots that change no more until their move to another node goes on or is undone.
import type { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";

/** How long a client waits before it asks a frozen root again. */
const RETRY_AFTER_MS = 500;

/** The numbers of frozen roots, which the database has too. */
export class FrozenRoots {
  readonly #numbers = new Set<number>();
  readonly #undoes: (undo: () => void) => void;

  /** `undoes` takes what undoes a change, should its command fail. */
  constructor(db: DatabaseSync, undoes: (undo: () => void) => void) {
    this.#undoes = undoes;
    const frozen = db.prepare("SELECT number FROM root_move WHERE state = 'frozen'").all();
    for (const { number } of frozen as { number: number }[]) this.#numbers.add(number);
  }

  /** Throws NODE_DRAINING for a frozen root. */
  requireChangeable(number: number): void {
    if (!this.#numbers.has(number)) return;
    throw new GroveError("NODE_DRAINING", "this root is moving to another server; try again", {
      metadata: { retry_after_ms: String(RETRY_AFTER_MS), moving: "true" },
    });
  }

  /** Refuses changes of a root from now on, or allows them again. */
  set(number: number, isFrozen: boolean): void {
    if (this.#numbers.has(number) === isFrozen) return;
    this.#put(number, isFrozen);
    this.#undoes(() => this.#put(number, !isFrozen));
  }

  #put(number: number, isFrozen: boolean): void {
    if (isFrozen) this.#numbers.add(number);
    else this.#numbers.delete(number);
  }
}
