// Keeps the small files that this program leaves for its next runs from becoming too many.
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** Removes files of a folder that nobody has written to for so long; looks at so many at most. Never rejects for what is not there. */
export async function removeOldFiles(
  folder: string,
  limits: { readonly files: number; readonly ageMs: number },
): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.slice(0, limits.files)) {
    const path = join(folder, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > limits.ageMs) await rm(path, { force: true });
  }
}
