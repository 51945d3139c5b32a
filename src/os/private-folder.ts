// Makes a private folder with its missing parents, where Node's recursive way never ends.
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Makes a folder that only its owner may enter (mode 0700), with its missing parents; an existing one stays
 * as it is. Returns the topmost folder that it made, or undefined. Throws the system's error. Node's
 * `recursive` spins without end where a file system refuses new names with ENOENT, as /proc does.
 */
export function makePrivateFolder(path: string): string | undefined {
  const missing: string[] = [];
  for (let current = resolve(path); !isFolder(current); current = dirname(current)) missing.push(current);
  for (const folder of missing.toReversed()) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      // Another process may have made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !isFolder(folder)) throw error;
    }
  }
  return missing.at(-1);
}

/** False for a missing path; for any other file mkdir reports the error. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw error;
  }
}
