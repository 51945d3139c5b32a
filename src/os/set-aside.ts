// Renames a damaged file, so that an operator can still examine it (failure A-10).
import { rename } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import { syncDirectory } from "./atomic-file.ts";

/** Dependencies of setting aside. */
export interface SetAsideDeps {
  readonly clock: Pick<Clock, "wallMs">;
  readonly log: Logger;
}

/**
 * Renames the file to `.corrupt-<unix seconds>`, logs and returns the path. Throws STORAGE_FAILED or the
 * system's error.
 */
export async function setAside(path: string, { clock, log }: SetAsideDeps): Promise<string> {
  const aside = `${path}.corrupt-${Math.trunc(clock.wallMs() / 1_000)}`;
  await rename(path, aside);
  await syncDirectory(dirname(path));
  log.error("file_set_aside", { file: path, as: aside });
  return aside;
}
