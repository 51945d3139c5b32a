// Repeats what takes back staged rows until it is done: refused for a moment's load, they would lie uncounted until the next start.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";

/** Longest pause before a refused drop of what an upload or a copy has staged is tried again. */
export const DROP_RETRY_MAX_MS = 10_000;

const FIRST_WAIT_MS = 50;

/** Each waits with its upload or copy, whose place and reservation are held until then: there are no more of them than of those. */
export class SureDrops {
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(deps: { clock: Clock; logger: Logger }) {
    this.#clock = deps.clock;
    this.#logger = deps.logger;
  }

  /** Resolves when it is done, or when there is nothing to drop any more. After a failure of the store start-up finds what is left. */
  async run(drop: () => Promise<unknown>): Promise<void> {
    const refused = await tried(drop);
    if (refused === undefined) return;
    this.#logger.warn("storage.drop_delayed", { error: errorText(refused) });
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, DROP_RETRY_MAX_MS)) {
      await new Promise<void>((resolve) => this.#clock.after(waitMs, resolve));
      if ((await tried(drop)) === undefined) return;
    }
  }
}

/** The refusal that another try may not meet. */
async function tried(drop: () => Promise<unknown>): Promise<unknown> {
  try {
    await drop();
  } catch (error) {
    return isGroveError(error, "STORAGE_FAILED", "NO_SUCH_UPLOAD") ? undefined : error;
  }
  return undefined;
}
