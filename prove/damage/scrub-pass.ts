// One whole pass of the scrub over a store.
import { openTestStorage } from "#storage/local/store.fixture.ts";
import { until } from "#testing/until.ts";

/** Fast, and still slow enough for what is found to be written down as it comes. */
const SETTINGS = { bytesPerSecond: 2 ** 30, pauseMs: 86_400_000 };

/** Opens the store, scrubs all of it and closes it; tells why the store was given up, if it was. Throws what the opening throws. */
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
