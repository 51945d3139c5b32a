// Waits for other processes, threads and disks.
import { setTimeout as sleep } from "node:timers/promises";

/** Longer than a loaded machine needs, shorter than a test may take. */
const PATIENCE_MS = 90_000;
/**
 * Looks cost time that what is waited for needs: later ones come after a tenth of the time waited so far, and
 * dear ones after twice their own time.
 */
const PAUSES_MS = { shortest: 5, longest: 50, afterDearLook: 200 };

/** Polls until the result is neither `undefined` nor `false`, and returns it. Throws after a minute and a half. */
export async function until<T>(
  look: () => T | Promise<T>,
  what = "what is waited for",
): Promise<Exclude<T, undefined | false>> {
  const begunAtMs = performance.now();
  for (;;) {
    const lookedAtMs = performance.now();
    const found = await look();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    const nowMs = performance.now();
    const waitedMs = nowMs - begunAtMs;
    if (waitedMs > PATIENCE_MS) throw new Error(`${what} does not come`);
    const usualMs = Math.min(Math.max(waitedMs / 10, PAUSES_MS.shortest), PAUSES_MS.longest);
    await sleep(Math.max(usualMs, Math.min(2 * (nowMs - lookedAtMs), PAUSES_MS.afterDearLook)));
  }
}
