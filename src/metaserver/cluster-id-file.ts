// Keeps the cluster's id beside the metadata store, so that a lost store comes back as the same cluster (D19).
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { GroveError } from "#base/errors.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";

const FILE = "cluster_id";
const FORM = /^[\u0021-\u007e]{1,128}$/;

/** The id that this host's MetaServer last served. */
export interface ClusterIdFile {
  readonly clusterId: string | undefined;
  /** Writes an id that is new; resolves when it is on stable storage. */
  remember(clusterId: string): Promise<void>;
}

/** Opens the file in a folder. Throws BAD_ARGUMENT when it holds something else. */
export async function openClusterIdFile(folder: string): Promise<ClusterIdFile> {
  const path = join(folder, FILE);
  await removeLeftovers(path);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  });
  let clusterId = text?.trim();
  if (clusterId !== undefined && !FORM.test(clusterId)) {
    throw new GroveError("BAD_ARGUMENT", `${path} does not hold a cluster id`);
  }
  let writing: Promise<void> = Promise.resolve();
  return {
    get clusterId(): string | undefined {
      return clusterId;
    },
    async remember(joined: string): Promise<void> {
      if (joined !== clusterId) {
        clusterId = joined;
        writing = writeFileAtomic(path, `${joined}\n`);
      }
      await writing;
    },
  };
}
