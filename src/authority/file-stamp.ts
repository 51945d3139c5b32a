// Tells whether a file has changed without reading it.
import { stat } from "node:fs/promises";

/** Text that is another one when the file has been written or replaced; "none" for a file that cannot be looked at. */
export async function fileStamp(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined ? "none" : `${stats.mtimeMs}|${stats.ctimeMs}|${stats.size}|${stats.ino}`;
}
