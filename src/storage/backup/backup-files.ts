// Files on their way into a backup and out of it: linked or copied whole, checked, and on stable storage before anything names them.
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

/** Codes with which a filesystem says that it cannot link here. */
const NO_LINK: ReadonlySet<string> = new Set([
  "EXDEV",
  "EPERM",
  "EMLINK",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EACCES",
]);

/** What is wrong with a chunk's file, in words; every byte is read. */
export function chunkFileProblem(path: string, chunk: ChunkFacts): string | undefined {
  return checksumProblem(chunk) ?? lengthProblem(path, chunk.length) ?? bytesProblem(path, chunk);
}

/** Copies a file under another name first, flushes it and gives it its own; a crash leaves no part of it under that name. */
export function copyWhole(from: string, to: string): void {
  const temporary = join(dirname(to), `.${to.slice(dirname(to).length + 1)}.tmp`);
  rmSync(temporary, { force: true });
  try {
    // Where the filesystem can, the copy shares its blocks with the original until either changes.
    copyFileSync(from, temporary, constants.COPYFILE_FICLONE);
    flushFile(temporary);
    renameSync(temporary, to);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Gives a file a second name where the filesystem can; false where it cannot. */
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
