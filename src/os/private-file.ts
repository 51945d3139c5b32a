// Files that only their owner may read: tokens, profiles, keys.
import { open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { GroveError } from "#base/errors.ts";
import { syncDirectory, writeFileAtomic } from "./atomic-file.ts";
import { makePrivateFolder } from "./private-folder.ts";

const GROUP_AND_OTHERS = 0o077;

/**
 * Reads a file that only its owner may read; undefined when it does not exist. Throws BAD_ARGUMENT when group
 * or others may read or write it, or when it belongs to another user.
 */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  const handle = await open(path, "r").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  try {
    const { mode, uid } = await handle.stat();
    if ((mode & GROUP_AND_OTHERS) !== 0) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `${path} can be read or written by others; make it yours alone: chmod 600 '${path}'`,
      );
    }
    const own = process.getuid?.();
    if (own !== undefined && own !== 0 && uid !== own) {
      throw new GroveError("BAD_ARGUMENT", `${path} belongs to another user of this machine`);
    }
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

/** Replaces a file as a whole with mode 0600; makes a missing folder with mode 0700. */
export async function writePrivateFile(path: string, content: string | Uint8Array): Promise<void> {
  makePrivateFolder(dirname(path));
  await writeFileAtomic(path, content, { mode: 0o600 });
}

/** Makes a new file with mode 0600; resolves when it is on stable storage. Rejects with EEXIST. */
export async function createPrivateFile(path: string, content: string | Uint8Array): Promise<void> {
  const handle = await open(path, "wx", 0o600);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncDirectory(dirname(path));
}

/** Removes a file for good; a missing one is no error. */
export async function removePrivateFile(path: string): Promise<void> {
  try {
    await rm(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  await syncDirectory(dirname(path));
}
