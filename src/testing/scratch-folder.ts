// Folders for one test process.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders: string[] = [];

/**
 * Makes an empty folder of its own, whose name begins with `name`, in the machine's folder for temporary
 * files. It is removed when the test process exits. A hook would run too early: hooks run in order of
 * registration, before the one that stops the server which still writes there.
 */
export function scratchFolder(name: string): string {
  if (folders.length === 0) process.once("exit", removeAll);
  const folder = mkdtempSync(join(tmpdir(), name));
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
