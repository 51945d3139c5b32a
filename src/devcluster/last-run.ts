// Waits until the processes of a killed run have released their ports and locks.
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { isProcessAlive } from "#os/process-alive.ts";

const WAIT_MAX_MS = 8_000;
const LOOK_INTERVAL_MS = 100;

/**
 * Resolves when no process of a cluster file is alive, or after 8 s: an id may be another process's by now.
 */
export async function waitForLastRun(clusterFile: string): Promise<void> {
  const pids = await pidsOf(clusterFile);
  const giveUpAtMs = performance.now() + WAIT_MAX_MS;
  while (pids.some(isProcessAlive) && performance.now() < giveUpAtMs) await sleep(LOOK_INTERVAL_MS);
}

async function pidsOf(path: string): Promise<number[]> {
  try {
    const { pids } = JSON.parse(await readFile(path, "utf8")) as { pids?: Record<string, unknown> };
    return Object.values(pids ?? {}).filter(
      (pid) => Number.isSafeInteger(pid) && Number(pid) > 1,
    ) as number[];
  } catch {
    // Missing, or not a cluster file.
    return [];
  }
}
