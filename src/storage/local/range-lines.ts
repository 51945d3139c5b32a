// Serialises writes to one file: queues bounded per user, per file and in all, round-robin over users.
import { GroveError } from "#base/errors.ts";
import { FairSlots } from "#storage/chunks/fair-slots.ts";
import type { InodeId } from "#storage/contract/inode.ts";

/** Ranged writes of all users that may be under way or wait; more are answered OVERLOADED. */
export const RANGE_WRITES_WAITING = 16_384;
/** The same for one user, in all files together; more are answered RATE_LIMITED. */
export const RANGE_WRITES_WAITING_PER_USER = 1_024;
/** Ranged writes that may wait for one file, round-robin over users; more are answered OVERLOADED. */
export const RANGE_WRITES_WAITING_PER_FILE = 4_096;

/** Runs writes to one file in sequence, those to several files concurrently. */
export class RangeLines {
  readonly #files = new Map<InodeId, FairSlots>();
  /** Running and waiting writes, per user and in all. */
  readonly #ofUser = new Map<string, number>();
  #all = 0;

  /**
   * Runs a write after those before it in its file. Throws RATE_LIMITED when the user has too many waiting,
   * in all files together. Throws OVERLOADED when too many wait for the file or in all.
   */
  async run<T>(by: string, fileId: InodeId, write: () => Promise<T>): Promise<T> {
    const own = this.#ofUser.get(by) ?? 0;
    if (own >= RANGE_WRITES_WAITING_PER_USER) {
      throw new GroveError(
        "RATE_LIMITED",
        `you have ${RANGE_WRITES_WAITING_PER_USER} writes under way; wait for some of them`,
        { metadata: { retry_after_ms: "1000", limit: String(RANGE_WRITES_WAITING_PER_USER) } },
      );
    }
    if (this.#all >= RANGE_WRITES_WAITING)
      throw new GroveError("OVERLOADED", "too many writes wait; try again");
    const line = this.#files.get(fileId) ?? newLine();
    this.#files.set(fileId, line);
    this.#ofUser.set(by, own + 1);
    this.#all++;
    try {
      return await line.run(by, write);
    } finally {
      this.#all--;
      const left = (this.#ofUser.get(by) ?? 1) - 1;
      if (left === 0) this.#ofUser.delete(by);
      else this.#ofUser.set(by, left);
      if (line.isIdle) this.#files.delete(fileId);
    }
  }
}

function newLine(): FairSlots {
  return new FairSlots({
    what: "writes to this file",
    slots: 1,
    slotsPerUser: 1,
    waiting: RANGE_WRITES_WAITING_PER_FILE,
    waitingPerUser: RANGE_WRITES_WAITING_PER_USER,
  });
}
