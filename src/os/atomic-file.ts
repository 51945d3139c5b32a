// Replaces files atomically: after a crash the file has the old content or the new.
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, type FileHandle, link, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { GroveError } from "#base/errors.ts";

/** Options of an atomic write. */
export interface AtomicWriteOptions {
  /** Permissions of the new file; default 0600. */
  readonly mode?: number;
  /** Keeps the replaced file as `<path>.previous`. */
  readonly keepPrevious?: boolean;
}

const TEMPORARY = /^\.(.+)\.[0-9a-f]{16}\.tmp$/;

/**
 * Replaces a file: a temporary file in the same folder (O_EXCL), full write, fsync, rename, fsync of the
 * folder. Content comes at once or in pieces. Resolves when the new content is on stable storage. A failed
 * flush is STORAGE_FAILED and is never tried again; other failures keep the system's error. Until the rename
 * the old content stays.
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

/** Path of the previous generation, as `keepPrevious` leaves it. */
export function previousGeneration(path: string): string {
  return `${path}.previous`;
}

/**
 * Flushes a folder, so that new and removed names survive a power cut. Throws STORAGE_FAILED when it fails.
 */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await flush(handle, path);
  } finally {
    await handle.close();
  }
}

/** Removes temporary files that interrupted writes of this path left. Call it before the first write. */
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
    // The process's umask may have cleared requested bits.
    await handle.chmod(mode);
    if (typeof content === "string" || content instanceof Uint8Array) await handle.writeFile(content);
    else for await (const piece of content) await handle.writeFile(piece);
    await flush(handle, path);
  } finally {
    await handle.close();
  }
}

/** Links the old content to its second name first, so that at every moment one of the names exists. */
async function keepPrevious(path: string): Promise<void> {
  const temporary = temporaryName(previousGeneration(path));
  try {
    await link(path, temporary).catch(async (error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") throw error;
      // The filesystem has no hard links.
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
    // After a failed fsync the kernel may drop the pages and report success the next time.
    throw new GroveError("STORAGE_FAILED", `flushing ${path} to stable storage failed`, { cause });
  }
}
