// A folder in memory for the temporary files of a test run: there a flush costs nothing, nor do files made again.
import { spawnSync } from "node:child_process";
import { chmod, mkdtemp, readdir, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isProcessAlive } from "#os/process-alive.ts";

/** Where Linux keeps files in memory. */
const MEMORY = "/dev/shm";
/** Room of the folder, and of the machine's memory; a whole run fills up to a quarter of it at once. */
const MIN_FREE_BYTES = 4 * 2 ** 30;
const NAME = /^grove-tests-(?<pid>\d+)-/;

/** Whether a folder and the machine have that room. */
async function isFit(memory: string): Promise<boolean> {
  const free = await statfs(memory).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return Math.min(free, process.availableMemory()) > MIN_FREE_BYTES;
}

/**
 * Makes an empty folder in memory, which other users may enter but not change. Undefined where there is too
 * little memory, or where no program may run from it.
 */
export async function memoryFolder(memory: string = MEMORY): Promise<string | undefined> {
  if (!(await isFit(memory))) return undefined;
  await removeLeft(memory);
  const folder = await mkdtemp(join(memory, `grove-tests-${process.pid}-`));
  // PostgreSQL runs as another user where the tests run as root.
  await chmod(folder, 0o755);
  const program = join(folder, "program");
  await writeFile(program, "#!/bin/sh\n", { mode: 0o755 });
  const runs = spawnSync(program).status === 0;
  await rm(runs ? program : folder, { recursive: true });
  return runs ? folder : undefined;
}

/** Removes folders of runs that were killed. */
async function removeLeft(memory: string): Promise<void> {
  for (const name of await readdir(memory)) {
    const pid = Number(NAME.exec(name)?.groups?.["pid"] ?? process.pid);
    if (pid === process.pid || isProcessAlive(pid)) continue;
    // A disk may still be mounted below it, which must not stop the tests of now.
    await rm(join(memory, name), { recursive: true, force: true }).catch(() => undefined);
  }
}
