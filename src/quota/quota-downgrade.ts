// Takes `quota_config.json` back to the form of a Grove without limits of files.
import { join } from "node:path";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { formatQuotas, readGeneration } from "./quota-format.ts";
import { QUOTA_FILE } from "./quota-store.ts";

/** Drops the inode limits of a stopped node; the quotas stay. Returns the number of users who had one. */
export async function dropInodeLimits(dataFolder: string): Promise<number> {
  const path = join(dataFolder, QUOTA_FILE);
  const { entries } = await readGeneration(path);
  if (entries === undefined || entries.inodeLimits.size === 0) return 0;
  await writeFileAtomic(path, formatQuotas({ quotas: entries.quotas, inodeLimits: new Map() }));
  return entries.inodeLimits.size;
}
