// Replaces files as a whole, so that a crash leaves the old content or the new and never a mixture.
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, type FileHandle, link, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { GroveError } from "#base/errors.ts";

/** How a file is replaced. */
export interface AtomicWriteOptions {
  /** Permissions of the new file; default 0600. */
  readonly mode?: number;
  /** Keeps what was there as `<path>.previous`. */
  readonly keepPrevious?: boolean;
}

const TEMPORARY = /^\.(.+)\.[0-9a-f]{16}\.tmp$/;

/**
 * Replaces a file, at once or piece by piece: a temporary file in the same folder (O_EXCL), full write, fsync, rename, fsync of the folder. Resolves only when
 * the new content is on stable storage. A failed flush is final: STORAGE_FAILED, nothing is tried again; other failures keep the
 * system's error. Before the rename the old content stays, whatever fails.
 */
export async function writeFileAtomic(
  path: string,
  content: string | Uint8Array | AsyncIterable<string | Uint8Array>,
  options: AtomicWriteOptions = {},
): Promise<void> {
  const folder = dirname(path);
  const temporary = temporaryName(path);
  try {
    await writeNew(temporary, content, options.mode ?? 0o600);
    if (options.keepPrevious === true) await keepPrevious(path);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(folder);
}

/** Path of the generation before, as `keepPrevious` leaves it. */
export function previousGeneration(path: string): string {
  return `${path}.previous`;
}

/** Flushes a folder, so that names made or removed in it survive a power cut. Throws STORAGE_FAILED when the flush fails. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await flush(handle, path);
  } finally {
    await handle.close();
  }
}

/** Removes the temporary files that writes of this path left behind when the machine stopped; call it before the first write. */
export async function removeLeftovers(path: string): Promise<void> {
  const folder = dirname(path);
  for (const name of await readdir(folder)) {
    if (TEMPORARY.exec(name)?.[1] === basename(path)) await rm(join(folder, name), { force: true });
  }
}

function temporaryName(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(8).toString("hex")}.tmp`);
}

async function writeNew(
  path: string,
  content: string | Uint8Array | AsyncIterable<string | Uint8Array>,
  mode: number,
): Promise<void> {
  const handle = await open(path, "wx", mode);
  try {
    // The mask of the process may have taken bits away that were asked for.
    await handle.chmod(mode);
    if (typeof content === "string" || content instanceof Uint8Array) await handle.writeFile(content);
    else for await (const piece of content) await handle.writeFile(piece);
    await flush(handle, path);
  } finally {
    await handle.close();
  }
}

/** The old content gets its second name before the first is taken from it: at no moment is there neither. */
async function keepPrevious(path: string): Promise<void> {
  const temporary = temporaryName(previousGeneration(path));
  try {
    await link(path, temporary).catch(async (error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") throw error;
      // A filesystem without hard links.
      await copyFile(path, temporary, constants.COPYFILE_EXCL);
      const copy = await open(temporary, "r+");
      try {
        await flush(copy, temporary);
      } finally {
        await copy.close();
      }
    });
    await rename(temporary, previousGeneration(path));
  } catch (error) {
    await rm(temporary, { force: true });
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

async function flush(handle: FileHandle, path: string): Promise<void> {
  try {
    await handle.sync();
  } catch (cause) {
    // After a failed fsync the kernel may have dropped the pages and report success the next time.
    throw new GroveError("STORAGE_FAILED", `flushing ${path} to stable storage failed`, { cause });
  }
}
