// What lies in a folder of the door alone: roots on many servers, of which some may not answer.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import type { DavResource } from "#door/webdav/resource.ts";
import { statusOf } from "#door/webdav/status-table.ts";
import { virtualResource } from "./resources.ts";

/** Entries that are looked at at the same time. */
const LOOKS_AT_ONCE = 32;
/** Those whose turn comes later are shown unseen: many on one silent server would keep a program waiting. */
const LOOKS_MS = 5_000;

/** Where entries are looked at. */
export interface WayLooks {
  readonly look: (path: readonly string[]) => Promise<DavResource | undefined>;
  readonly clock: Pick<Clock, "steadyMs">;
}

/**
 * The entries at these paths, in their order, without those that are not there. Where all are folders, one that no
 * server answers for, or that was not reached in time, is a plain folder: it may open later, and those beside it open
 * now. Elsewhere its failure is thrown, since it may be a file.
 */
export async function wayEntries(
  paths: readonly (readonly string[])[],
  { look, clock }: WayLooks,
  areFolders: boolean,
): Promise<readonly DavResource[]> {
  const found: (DavResource | undefined)[] = [];
  const untilMs = clock.steadyMs() + LOOKS_MS;
  const waiting = paths.entries();
  const lookAtOthers = async (): Promise<void> => {
    for (const [index, path] of waiting) {
      const isInTime = !areFolders || clock.steadyMs() < untilMs;
      found[index] = isInTime ? await entryAt(path, look, areFolders) : virtualResource(path);
    }
  };
  await Promise.all(Array.from({ length: LOOKS_AT_ONCE }, lookAtOthers));
  return found.filter((entry) => entry !== undefined);
}

async function entryAt(
  path: readonly string[],
  look: WayLooks["look"],
  isFolder: boolean,
): Promise<DavResource | undefined> {
  try {
    return await look(path);
  } catch (error) {
    // It was shared a few seconds ago.
    if (isGroveError(error, "NOT_SHARED", "NOT_OWNER")) return undefined;
    const status = statusOf(error) ?? 0;
    // A refusal of another kind is about the person, and holds everywhere.
    if (isFolder && (status === 429 || status >= 500)) return virtualResource(path);
    throw error;
  }
}
