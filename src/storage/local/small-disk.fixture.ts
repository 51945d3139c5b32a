// A filesystem that a test can fill.
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { temporaryDirectory } from "#testing/temporary-folder.ts";

/**
 * Runs a test in a filesystem of so many MiB and inodes; skips it, with the reason, where none can be
 * mounted.
 */
export async function onSmallDisk(
  context: TestContext,
  { mebibytes, inodes = 100_000 }: { readonly mebibytes: number; readonly inodes?: number },
  run: (directory: string) => Promise<void>,
): Promise<void> {
  const directory = join(temporaryDirectory(context), "small");
  mkdirSync(directory);
  const options = `size=${mebibytes}m,nr_inodes=${inodes}`;
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", directory]);
  if (status !== 0) {
    context.skip(`a small tmpfs cannot be mounted: ${String(stderr).trim()}`);
    return;
  }
  try {
    await run(directory);
  } finally {
    spawnSync("umount", [directory]);
  }
}
