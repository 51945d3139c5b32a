// A filesystem that a test can fill, and one that has turned read-only.
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

/** Runs a test while a folder takes no changes; skips it, with the reason, where that cannot be had. */
export async function whileReadOnly(
  context: TestContext,
  directory: string,
  run: () => Promise<void>,
): Promise<void> {
  const mount = (...args: string[]): string | undefined => {
    const { status, stderr } = spawnSync("mount", args);
    return status === 0 ? undefined : String(stderr).trim();
  };
  const whyNot = mount("--bind", directory, directory);
  if (whyNot !== undefined) {
    context.skip(`a folder cannot be mounted on itself: ${whyNot}`);
    return;
  }
  try {
    const refused = mount("-o", "remount,ro,bind", directory);
    if (refused === undefined) await run();
    else context.skip(`a folder cannot be made read-only: ${refused}`);
  } finally {
    // SQLite may keep files open there while the process has locks on the same ones.
    spawnSync("umount", ["-l", directory]);
  }
}
