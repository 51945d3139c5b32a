// Describes a folder of a store in lines: names, bytes, shares, trash, uploads, and its user's quota.
import { createHash } from "node:crypto";
import { QuotaStore } from "#quota/quota-store.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { OWNER, readAll } from "#storage/local/store.fixture.ts";
import { uploadIdOf } from "./operations.ts";

const LIMIT = 1_000;

/** Returns sorted lines with all that users can see of an operation's folder; without ids and times. */
export async function dumpOf(storage: Storage, directory: string, folder: string): Promise<string[]> {
  const lines: string[] = [];
  const walk = async (directoryId: InodeId, path: string): Promise<number> => {
    let sum = 0;
    const { entries } = storage.list(directoryId, { limit: LIMIT, pageToken: "", sort: "name" });
    for (const entry of entries) {
      const at = `${path}/${entry.name}`;
      if (entry.kind === "directory") {
        const below = await walk(entry.id, at);
        lines.push(`${at}: folder of ${entry.sizeBytes} bytes`);
        if (below !== entry.sizeBytes) lines.push(`${at} holds ${below} bytes instead`);
      } else {
        const bytes = await readAll(storage, entry.id);
        const hash = createHash("sha256").update(bytes).digest("base64url");
        lines.push(`${at}: ${entry.sizeBytes} bytes, ${bytes.length} read, ${hash}`);
      }
      sum += entry.sizeBytes;
    }
    return sum;
  };
  const { chain, missing } = storage.resolve(OWNER, [folder]);
  if (missing.length === 0) await walk((chain.at(-1) ?? chain[0]).id, folder);
  const top = `/${folder}/`;
  for (const { path, username } of storage.shares.ofRoot(OWNER))
    if (path.startsWith(top)) lines.push(`share of ${path} with ${username}`);
  const { items } = storage.listTrash(OWNER, { limit: LIMIT, pageToken: "" });
  for (const { originalPath, sizeBytes, inodeCount } of items)
    if (originalPath.startsWith(top))
      lines.push(`trash of ${originalPath}: ${sizeBytes} bytes, ${inodeCount} inodes`);
  const upload = storage.uploads.find(uploadIdOf(folder));
  if (upload !== undefined) lines.push(`upload to ${upload.path}: ${upload.stagedBytes} bytes staged`);
  const quotas = await QuotaStore.open({ dataFolder: directory });
  const { bytes, source } = quotas.quotaOf(`${folder}@example.com`);
  if (source === "explicit") lines.push(`quota of ${bytes} bytes`);
  return lines.sort();
}
