// Tells whether a file has changed without reading it.
import { stat } from "node:fs/promises";

/** How often servers look whether their certificate files or the list of revoked ones have changed. */
export const CERTIFICATE_CHECK_INTERVAL_MS = 5_000;

/** Text that is another one when the file has been written or replaced; "none" for a file that cannot be looked at. */
export async function fileStamp(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined ? "none" : `${stats.mtimeMs}|${stats.ctimeMs}|${stats.size}|${stats.ino}`;
}
