// Waits for other processes, threads and disks.
import { setTimeout as sleep } from "node:timers/promises";

/** Longer than a loaded machine needs, shorter than a test may take. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 5;

/** Polls until the result is neither `undefined` nor `false`, and returns it. Throws after a minute. */
export async function until<T>(
  look: () => T | Promise<T>,
  what = "what is waited for",
): Promise<Exclude<T, undefined | false>> {
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    if (performance.now() > giveUpAtMs) throw new Error(`${what} does not come`);
    await sleep(PAUSE_MS);
  }
}
