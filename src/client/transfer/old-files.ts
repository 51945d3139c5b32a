// Bounds the small files that this program leaves for its next runs.
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** Removes files that are older than a limit; checks a limited number. Never rejects for missing files. */
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
