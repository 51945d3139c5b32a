// Files of backups: linked or copied whole, checked, and on stable storage before any reference to them.
import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import {
  bytesProblem,
  type ChunkFacts,
  checksumProblem,
  lengthProblem,
} from "#storage/chunks/chunk-check.ts";

/** Error codes of a filesystem that cannot link here. */
const NO_LINK: ReadonlySet<string> = new Set([
  "EXDEV",
  "EPERM",
  "EMLINK",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EACCES",
]);

/** Says what is wrong with a chunk's file; reads every byte. */
export function chunkFileProblem(path: string, chunk: ChunkFacts): string | undefined {
  return checksumProblem(chunk) ?? lengthProblem(path, chunk.length) ?? bytesProblem(path, chunk);
}

/**
 * Copies a file to a temporary name, flushes and renames it; a crash leaves no partial file under the final
 * name.
 */
export function copyWhole(from: string, to: string): void {
  const temporary = join(dirname(to), `.${to.slice(dirname(to).length + 1)}.tmp`);
  rmSync(temporary, { force: true });
  try {
    // Where the filesystem supports it, the copy shares its blocks with the original until either changes.
    copyFileSync(from, temporary, constants.COPYFILE_FICLONE);
    flushFile(temporary);
    renameSync(temporary, to);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Hard-links a file where the filesystem can; false where it cannot. */
export function linkWhole(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (NO_LINK.has((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

/** Puts a file's bytes on stable storage. */
export function flushFile(path: string): void {
  const descriptor = openSync(path, "r+");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
