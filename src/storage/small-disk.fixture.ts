// A filesystem that a test can fill.
import { spawnSync } from "node:child_process";

/** A filesystem of its own of so many MiB and inodes, or the reason why there is none. */
export function mountSmall(directory: string, mebibytes: number, inodes = 100_000): string | undefined {
  const { status, stderr } = spawnSync("mount", [
    "-t",
    "tmpfs",
    "-o",
    `size=${mebibytes}m,nr_inodes=${inodes}`,
    "tmpfs",
    directory,
  ]);
  return status === 0 ? undefined : `a small tmpfs cannot be mounted: ${String(stderr).trim()}`;
}
