// One whole pass of the scrub over a shared engine, in which one process ends and the next goes on.
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { until } from "#testing/until.ts";
import type { EngineDamageStore } from "./engine-store.ts";

const PAUSE_MS = 86_400_000;
/** Of the first process: slow, to be ended before it has read all, or fast, to be ended with marks under way. */
const BYTES_PER_SECOND = [20_000_000, 100_000_000] as const;
const FAST_BYTES_PER_SECOND = 2 ** 40;
/** How often the first process ends among the small files and not among the objects. */
const ENDS_IN_FILES = 0.3;

/** Scrubs all; false when the pass does not come to its end. Marks are in the database afterwards. */
export async function scrubbed(store: EngineDamageStore, random: SeededRandom): Promise<boolean> {
  const objectBytes = store.files.reduce(
    (sum, { chunks, bytes }) => sum + (chunks.length > 0 ? bytes.length : 0),
    0,
  );
  const endsAtBytes = random.chance(ENDS_IN_FILES) ? Number.POSITIVE_INFINITY : random.below(objectBytes);
  const isFar = (storage: Storage): boolean => {
    const { pass } = storage.scrubState();
    return pass === undefined || pass.part === "files" || pass.readBytes >= endsAtBytes;
  };
  if (!(await scrubUntil(store, random.pick(BYTES_PER_SECOND), isFar))) return false;
  return await scrubUntil(store, FAST_BYTES_PER_SECOND, (storage) => storage.scrubState().pass === undefined);
}

async function scrubUntil(
  store: EngineDamageStore,
  bytesPerSecond: number,
  isEnough: (storage: Storage) => boolean,
): Promise<boolean> {
  const { storage } = await store.open();
  try {
    storage.startScrub({ bytesPerSecond, pauseMs: PAUSE_MS });
    await until(() => isEnough(storage));
    return true;
  } catch {
    return false;
  } finally {
    await storage.close();
  }
}
