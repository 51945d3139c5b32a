// Downloads that were cut, beside the place of their file: which file and version they are of, and whose they are, is in their name.
import { createHash } from "node:crypto";
import { readdirSync, renameSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { isProcessAlive } from "#client/signin/process-lock.ts";

const PREFIX = ".grove-get-";
const SUFFIX = ".part";
/** What our servers' etags look like; another server's are not put into names. */
const ETAG = /^[0-9a-z]{1,16}-[0-9a-z]{1,16}$/;

/**
 * The path at which this process keeps its part of one version of a file. A part that a process which is gone has left of the same version
 * is moved there, others of the same file are removed. Undefined when the etag cannot be in a name: such a download cannot be resumed.
 */
export function claimPartial(
  folder: string,
  file: { readonly remote: RemotePath; readonly name: string; readonly etag: string },
): string | undefined {
  if (!ETAG.test(file.etag)) return undefined;
  const { root, path } = file.remote;
  const key = createHash("sha256").update(`${root}\0${path}\0${file.name}`).digest("hex").slice(0, 24);
  const own = `${PREFIX}${key}.${file.etag}.${process.pid}${SUFFIX}`;
  for (const name of namesIn(folder)) {
    if (!name.startsWith(`${PREFIX}${key}.`) || !name.endsWith(SUFFIX) || name === own) continue;
    const [etag, pid] = name.slice(PREFIX.length + key.length + 1, -SUFFIX.length).split(".");
    const isOurs = Number(pid) === process.pid;
    if (!isOurs && isProcessAlive(Number(pid))) continue;
    try {
      if (etag === file.etag) renameSync(join(folder, name), join(folder, own));
      else unlinkSync(join(folder, name));
    } catch {
      // Another process was faster.
    }
  }
  return join(folder, own);
}

/** In a folder that may be written and not read nothing is found, and the download begins anew. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
