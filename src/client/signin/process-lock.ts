// Runs an action in one process of this user at a time, such as registering after a restart.
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PROCESS_LOCK_STALE_MS, PROCESS_LOCK_TRIES, PROCESS_LOCK_WAIT_MS } from "#client/terminal/limits.ts";
import { ownMark, stateOfMarked } from "#os/process-alive.ts";

/**
 * Runs the action under the lock file; one of a dead process is taken over. The lock only saves work: without
 * it after some seconds, the action runs anyway.
 */
export async function withProcessLock<T>(path: string, action: () => Promise<T>): Promise<T> {
  const isHeld = await take(path);
  try {
    return await action();
  } finally {
    if (isHeld) await rm(path, { force: true });
  }
}

async function take(path: string): Promise<boolean> {
  for (let tries = 0; tries < PROCESS_LOCK_TRIES; tries++) {
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFile(path, ownMark(), { flag: "wx", mode: 0o600 });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") return false;
    }
    if (await isLeftBehind(path)) await rm(path, { force: true });
    else await sleep(PROCESS_LOCK_WAIT_MS);
  }
  return false;
}

/** True when the holder's process is gone, or the file is old and still empty. */
async function isLeftBehind(path: string): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > PROCESS_LOCK_STALE_MS) return true;
    const holder = await readFile(path, "utf8");
    // The file is empty for the moment between its creation and the first write.
    return holder !== "" && stateOfMarked(holder) === "gone";
  } catch {
    return false;
  }
}
