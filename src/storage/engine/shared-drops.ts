// Drops of staged rows, of uploads and copies, that are repeated for as long as their root is held.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { type InodeId, rootNumberOf } from "#storage/contract/inode.ts";
import { DropRetries } from "#storage/local/drop-retries.ts";

/** Dependencies of the drops. */
export interface SharedDropsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether the database has this process as the holder of a root. */
  readonly isHolder: (number: number) => Promise<boolean>;
}

/**
 * Whoever takes a root over purges what was staged there, so that nothing is left to drop here. A root that this
 * process holds by the database may be missing here for a moment, or have another name: then the drop waits.
 */
export class SharedDrops {
  readonly #isHolder: SharedDropsDeps["isHolder"];
  readonly #retries: DropRetries;

  constructor(deps: SharedDropsDeps) {
    this.#isHolder = deps.isHolder;
    this.#retries = new DropRetries(deps);
  }

  /** Resolves when a drop in the root of an inode or list is done, or there is nothing left to drop. */
  run(drop: () => Promise<unknown>, id: InodeId): Promise<void> {
    return this.#retries.run(async () => {
      try {
        await drop();
      } catch (error) {
        const isElsewhere = isGroveError(error, "NO_SUCH_PATH", "WRONG_NODE");
        if (!isElsewhere || (await this.#isHolder(rootNumberOf(id)))) throw error;
      }
    });
  }
}
