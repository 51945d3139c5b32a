// Sums of a copied directory, which its row gets once it is complete.
import type { CopySums } from "./copy-messages.ts";

/** Sums of an empty directory. */
export const NOTHING: CopySums = { bytes: 0, entries: 0, inodes: 0, files: 0, height: 0 };

/** Adds one file of a size to the sums. */
export function withFile(sums: CopySums, bytes: number): CopySums {
  return {
    bytes: sums.bytes + bytes,
    entries: sums.entries + 1,
    inodes: sums.inodes + 1,
    files: sums.files + 1,
    height: Math.max(sums.height, 1),
  };
}

/** Adds one directory, and everything below it, to the sums. */
export function withDirectory(sums: CopySums, below: CopySums): CopySums {
  return {
    bytes: sums.bytes + below.bytes,
    entries: sums.entries + 1,
    inodes: sums.inodes + 1 + below.inodes,
    files: sums.files + below.files,
    height: Math.max(sums.height, below.height + 1),
  };
}
