// Stores a data folder's cluster id, so that it never joins another, and its last registered process (D19).
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { openClusterIdFile } from "#security/authority/cluster-id-file.ts";
import type { ClusterMemory } from "./meta-link.ts";
import { readRestoredFrom } from "./restored-from.ts";

/** Outside backups, with the folder's inode number: a restored or copied folder is not this process's. */
const PROCESS_FILE = "last_process";
const FORM = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Reads the folder's cluster id, empty before the first join; `joined` hears of that before it is kept. Throws CORRUPT
 * for an invalid file.
 */
export async function openClusterMemory(
  dataFolder: string,
  joined: (clusterId: string) => Promise<void> = () => Promise.resolve(),
): Promise<ClusterMemory> {
  const idFile = await openClusterIdFile(dataFolder);
  const processPath = join(dataFolder, PROCESS_FILE);
  await removeLeftovers(processPath);
  const folderNumber = String((await stat(dataFolder, { bigint: true })).ino);
  const [kept = "", ofFolder] = ((await lineOf(processPath)) ?? "").split(" ");
  // Losing the last process costs only a wait.
  let lastProcess = FORM.test(kept) && ofFolder === folderNumber ? kept : "";
  return {
    restored: await readRestoredFrom(dataFolder),
    get clusterId(): string {
      return idFile.clusterId ?? "";
    },
    get lastProcess(): string {
      return lastProcess;
    },
    async registered(instanceId: string): Promise<void> {
      if (instanceId === lastProcess) return;
      await writeFileAtomic(processPath, `${instanceId} ${folderNumber}\n`);
      lastProcess = instanceId;
    },
    async remember(clusterId): Promise<void> {
      await joined(clusterId);
      await idFile.remember(clusterId);
    },
  };
}

async function lineOf(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}
