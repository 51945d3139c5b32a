// What a copied directory holds so far: the sums that its row gets once it is complete.
import type { CopySums } from "./copy-messages.ts";

/** Of a directory with nothing in it. */
export const NOTHING: CopySums = { bytes: 0, entries: 0, inodes: 0, files: 0, height: 0 };

/** With one file more, of so many bytes. */
export function withFile(sums: CopySums, bytes: number): CopySums {
  return {
    bytes: sums.bytes + bytes,
    entries: sums.entries + 1,
    inodes: sums.inodes + 1,
    files: sums.files + 1,
    height: Math.max(sums.height, 1),
  };
}

/** With one directory more, and what is below it. */
export function withDirectory(sums: CopySums, below: CopySums): CopySums {
  return {
    bytes: sums.bytes + below.bytes,
    entries: sums.entries + 1,
    inodes: sums.inodes + 1 + below.inodes,
    files: sums.files + below.files,
    height: Math.max(sums.height, below.height + 1),
  };
}
