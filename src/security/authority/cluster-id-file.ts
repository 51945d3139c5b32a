// The id of a data folder's cluster: `cluster_id`, beside a metadata store so that a lost store keeps it, and
// in a node's folder (D19).
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { GroveError } from "#base/errors.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";

const FILE = "cluster_id";
const FORM = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * The id of a folder's cluster; undefined for a folder that has joined none. Throws CORRUPT for a malformed
 * file.
 */
export async function readClusterId(folder: string): Promise<string | undefined> {
  const path = join(folder, FILE);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  });
  const clusterId = text?.trim();
  if (clusterId === undefined || FORM.test(clusterId)) return clusterId;
  throw new GroveError(
    "CORRUPT",
    `${path} does not hold a cluster id: copy that file from the data folder of another server of the cluster`,
  );
}

/** The file of a folder. */
export interface ClusterIdFile {
  readonly clusterId: string | undefined;
  /** Writes a new id; resolves when it is on stable storage. Throws BAD_ARGUMENT for an invalid one. */
  remember(clusterId: string): Promise<void>;
}

/** Opens the file of a folder. Throws CORRUPT when it is malformed. */
export async function openClusterIdFile(folder: string): Promise<ClusterIdFile> {
  const path = join(folder, FILE);
  await removeLeftovers(path);
  let clusterId = await readClusterId(folder);
  let writing: Promise<void> = Promise.resolve();
  const write = async (joined: string): Promise<void> => {
    if (joined === clusterId) return;
    await writeFileAtomic(path, `${joined}\n`);
    clusterId = joined;
  };
  return {
    get clusterId(): string | undefined {
      return clusterId;
    },
    async remember(joined: string): Promise<void> {
      if (!FORM.test(joined))
        throw new GroveError("BAD_ARGUMENT", "the metaserver sent something that is no cluster id");
      writing = writing.catch(() => undefined).then(() => write(joined));
      await writing;
    },
  };
}
