// Where the next slice of a removal looks: what cannot be removed is passed over until all the rest is gone.
import type { InodeId } from "#storage/contract/inode.ts";

/** Removals that fail one after the other before a turn ends. */
const FAILED_MAX = 16;

/** A directory or a list of chunks that waits for its removal. */
export interface Detached {
  readonly id: number;
  readonly inodeId: InodeId | null;
  readonly contentId: number | null;
}

/** A way through detached rows from the newest to the oldest, again and again. */
export class PurgeCursor {
  /** Id below which the next slice looks: above it are those that were refused. */
  #below = Number.MAX_SAFE_INTEGER;
  /** Id of what the last slice was about. */
  #at: number | undefined;
  #failed = 0;
  /** True where the newest is to be looked at again: something has gone since, or may have come. */
  #looksAgain = false;

  /** What the next slice is about, by a look for the newest below an id. */
  next(newestBelow: (id: number) => Detached | undefined): Detached | undefined {
    this.#at = undefined;
    const next = newestBelow(this.#below);
    this.#at = next?.id;
    return next;
  }

  /** Something new may be detached. */
  lookAgain(): void {
    this.#looksAgain = true;
  }

  /** The slice has removed something. */
  removed(): void {
    this.#failed = 0;
    this.#looksAgain = true;
  }

  /**
   * Nothing is left below. True where what was passed over is tried again now: something else has gone since the
   * last try.
   */
  atEnd(): boolean {
    const goesOn = this.#looksAgain && this.#below < Number.MAX_SAFE_INTEGER;
    this.#below = Number.MAX_SAFE_INTEGER;
    this.#looksAgain = false;
    return goesOn;
  }

  /** The slice failed. False after several in a row: it is not they that are odd. The next turn goes on behind. */
  passOver(): boolean {
    if (this.#at === undefined) return false;
    this.#below = this.#at;
    this.#failed = (this.#failed + 1) % FAILED_MAX;
    return this.#failed > 0;
  }
}
