// Waits for what is left of a run that was killed: its processes notice, but need a moment to let go of ports and locks.
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const WAIT_MAX_MS = 8_000;
const LOOK_INTERVAL_MS = 100;

/** Resolves when none of the processes that a cluster file names is alive, at the latest after 8 s: an id may be another's by now. */
export async function waitForLastRun(clusterFile: string): Promise<void> {
  const pids = await pidsOf(clusterFile);
  const giveUpAtMs = performance.now() + WAIT_MAX_MS;
  while (pids.some(isAlive) && performance.now() < giveUpAtMs) await sleep(LOOK_INTERVAL_MS);
}

async function pidsOf(path: string): Promise<number[]> {
  try {
    const { pids } = JSON.parse(await readFile(path, "utf8")) as { pids?: Record<string, unknown> };
    return Object.values(pids ?? {}).filter(
      (pid) => Number.isSafeInteger(pid) && Number(pid) > 1,
    ) as number[];
  } catch {
    // There was none, or it is not one of ours.
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
