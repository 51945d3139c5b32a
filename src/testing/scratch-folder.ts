// Folders for one test process.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders: string[] = [];

/** The folder for temporary files on a disk, where `npm test` keeps most of them in memory. */
export function diskFolder(): string {
  return process.env["GROVE_TEST_DISK"] ?? tmpdir();
}

/**
 * Makes an empty folder of its own, whose name begins with `name`, in `under`: by default the folder for
 * temporary files. It is removed when the test process exits. A hook would run too early: hooks run in order
 * of registration, before the one that stops the server which still writes there.
 */
export function scratchFolder(name: string, under: string = tmpdir()): string {
  if (folders.length === 0) process.once("exit", removeAll);
  const folder = mkdtempSync(join(under, name));
  folders.push(folder);
  return folder;
}

/** Repeats, since a child process may write until it notices the end of this one. */
function removeAll(): void {
  for (const folder of folders) {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    } catch (error) {
      process.stderr.write(`${folder} was not removed: ${String(error)}\n`);
    }
  }
}
