// Retries drops of staged rows until they succeed: refused under load, the rows would stay uncounted until
// the next start.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";

/** Longest pause before a refused drop of staged rows, of an upload or a copy, is retried. */
export const DROP_RETRY_MAX_MS = 10_000;

const FIRST_WAIT_MS = 50;

/**
 * Retries drops. Each holds the place and reservation of its upload or copy, so there are no more of them.
 */
export class DropRetries {
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(deps: { clock: Clock; logger: Logger }) {
    this.#clock = deps.clock;
    this.#logger = deps.logger;
  }

  /**
   * Resolves when the drop is done, or there is nothing left to drop. After a failure of the store start-up
   * drops the rest.
   */
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

/** The refusal, when another try may succeed. */
async function tried(drop: () => Promise<unknown>): Promise<unknown> {
  try {
    await drop();
  } catch (error) {
    return isGroveError(error, "STORAGE_FAILED", "NO_SUCH_UPLOAD") ? undefined : error;
  }
  return undefined;
}
