// Detects a changed file without reading it.
import { stat } from "node:fs/promises";

/** How often servers check whether their certificate files or the list of revoked ones have changed. */
export const CERTIFICATE_CHECK_INTERVAL_MS = 5_000;

/** Text that changes when the file is written or replaced; "none" for an inaccessible file. */
export async function fileStamp(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined ? "none" : `${stats.mtimeMs}|${stats.ctimeMs}|${stats.size}|${stats.ino}`;
}

/** The same of several files together. */
export async function stampOfFiles(paths: readonly string[]): Promise<string> {
  return (await Promise.all(paths.map(fileStamp))).join(" ");
}
