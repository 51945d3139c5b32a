// The partial files of cut downloads, whose names hold the file, its version and the process.
import { createHash } from "node:crypto";
import { readdirSync, renameSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { ownMark } from "#os/process-alive.ts";
import { isLeft } from "./part-owner.ts";

const PREFIX = ".grove-get-";
const SUFFIX = ".part";
/** The form of our servers' etags; others are not put into names. */
const ETAG = /^[0-9a-z]{1,16}-[0-9a-z]{1,16}$/;

/**
 * The path of this process's part of one version of a file. Takes over the part of a dead process for that
 * version and removes other versions. Undefined when the etag cannot be in a name: such a download cannot be
 * resumed.
 */
export function claimPartial(
  folder: string,
  file: { readonly remote: RemotePath; readonly name: string; readonly etag: string },
): string | undefined {
  if (!ETAG.test(file.etag)) return undefined;
  const { root, path } = file.remote;
  const key = createHash("sha256").update(`${root}\0${path}\0${file.name}`).digest("hex").slice(0, 24);
  const own = `${PREFIX}${key}.${file.etag}.${ownMark()}${SUFFIX}`;
  for (const name of namesIn(folder)) {
    if (!name.startsWith(`${PREFIX}${key}.`) || !name.endsWith(SUFFIX) || name === own) continue;
    const [etag, owner = ""] = name.slice(PREFIX.length + key.length + 1, -SUFFIX.length).split(".");
    if (!isLeft(join(folder, name), owner)) continue;
    try {
      if (etag === file.etag) renameSync(join(folder, name), join(folder, own));
      else unlinkSync(join(folder, name));
    } catch {
      // Another process was faster.
    }
  }
  return join(folder, own);
}

/** An unreadable folder yields nothing, so the download begins anew. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
