// Replaces files as a whole, so that a crash leaves the old content or the new and never a mixture.
import { GroveError } from "#base/errors.ts";

/** How a file is replaced. */
export interface AtomicWriteOptions {
  /** Permissions of the new file; default 0600. */
  readonly mode?: number;
  /** Keeps what was there as `<path>.previous`. */
  readonly keepPrevious?: boolean;
}

/**
 * Replaces a file: a temporary file in the same folder (O_EXCL), full write, fsync, rename, fsync of the folder. Resolves only when
 * the new content is on stable storage. A failed flush is final: the promise rejects and the old content stays.
 */
export async function writeFileAtomic(
  path: string,
  content: string | Uint8Array,
  options: AtomicWriteOptions = {},
): Promise<void> {
  void path;
  void content;
  void options;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}

/** Path of the generation before, as `keepPrevious` leaves it. */
export function previousGeneration(path: string): string {
  return `${path}.previous`;
}

/** Flushes a folder, so that names made or removed in it survive a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  void path;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}
