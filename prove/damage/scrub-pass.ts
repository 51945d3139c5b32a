// One whole pass of the scrub over a store.
import { openTestStorage } from "#storage/local/store.fixture.ts";
import { until } from "#testing/until.ts";

/** Fast, and still slow enough for findings to be written down one by one. */
const SETTINGS = { bytesPerSecond: 2 ** 30, pauseMs: 86_400_000 };

/**
 * Opens the store, scrubs all of it and closes it; returns the reason if the store was given up. Throws
 * errors of the opening.
 */
export async function scrubbed(directory: string): Promise<string | undefined> {
  const storage = await openTestStorage(directory);
  try {
    storage.startScrub(SETTINGS);
    await until(
      () =>
        storage.failure !== undefined ||
        (!storage.scrubState().isRunning && storage.scrubState().lastEndedAtMs !== undefined),
    );
    return storage.failure;
  } finally {
    await storage.close();
  }
}
