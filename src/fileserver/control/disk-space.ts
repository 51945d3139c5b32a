// Free and total bytes at the data folder, read at most once in a turn of the event loop.
import { statfsSync } from "node:fs";
import type { DiskSpace } from "./meta-link.ts";

/** One system call on the superblock in memory: cheap enough for every chunk (D16). */
export function diskSpaceOf(folder: string): DiskSpace {
  const { bsize, blocks, bavail } = statfsSync(folder, { bigint: true });
  return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
}

/** Reads at most once in a turn of the event loop: one turn sees one moment. */
export function oncePerTurn<T extends object>(read: () => T): () => T {
  let known: T | undefined;
  const forget = (): void => {
    known = undefined;
  };
  return () => {
    if (known === undefined) {
      known = read();
      setImmediate(forget);
    }
    return known;
  };
}
