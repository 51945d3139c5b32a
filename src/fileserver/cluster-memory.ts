// Remembers in the data folder which cluster it belongs to, so that it never joins another by mistake (D19).
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { GroveError } from "#base/errors.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import type { ClusterMemory } from "./meta-link.ts";

const FILE = "cluster_id";
const FORM = /^[A-Za-z0-9_-]{1,64}$/;

/** Reads the folder's cluster id, empty for a folder that has joined none. Throws CORRUPT when the file holds something else. */
export async function openClusterMemory(dataFolder: string): Promise<ClusterMemory> {
  const path = join(dataFolder, FILE);
  await removeLeftovers(path);
  let clusterId = "";
  try {
    clusterId = (await readFile(path, "utf8")).trim();
    if (!FORM.test(clusterId)) throw new GroveError("CORRUPT", `${path} does not hold a cluster id`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return {
    get clusterId(): string {
      return clusterId;
    },
    async remember(joined: string): Promise<void> {
      if (!FORM.test(joined))
        throw new GroveError("BAD_ARGUMENT", "the metaserver sent something that is no cluster id");
      await writeFileAtomic(path, `${joined}\n`);
      clusterId = joined;
    },
  };
}
