// Makes a folder and what is missing above it, where Node's own recursive way never ends.
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Makes a folder that only its owner may enter (mode 0700), with what is missing above it; one that is there is left as it is. Answers
 * the topmost folder that was made, undefined when none was. Throws the system's error. Node's `recursive` spins without end where a
 * file system refuses new names with ENOENT, as /proc does.
 */
export function makePrivateFolder(path: string): string | undefined {
  const missing: string[] = [];
  for (let current = resolve(path); !isFolder(current); current = dirname(current)) missing.push(current);
  for (const folder of missing.toReversed()) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      // Somebody else may have made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !isFolder(folder)) throw error;
    }
  }
  return missing.at(-1);
}

/** False for what is not there; what is there and no folder is left to mkdir, which says so. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw error;
  }
}
