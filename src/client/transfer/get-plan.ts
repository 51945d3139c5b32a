// Plans where each source of a download goes: as a cut run left it, else by the target.
import { type BigIntStats, lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve as resolveLocal } from "node:path";
import { systemClock } from "#base/clock.ts";
import { shellWord } from "#base/shell-word.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { isFolder } from "#client/connection/listing.ts";
import { baseName, formatRemotePath, type TypedPath } from "#client/connection/remote-path.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { requireWord } from "./local-source.ts";
import { refuseOverlaps } from "./overlaps.ts";
import { requireReplaceable } from "./replaced-file.ts";
import { BY_BOTH, BY_TIME, type Sameness } from "./sameness.ts";
import type { PlannedTransfer } from "./transfer-frame.ts";
import {
  clusterName,
  type TransferJournal,
  type TransferPair,
  type TransferRecord,
} from "./transfer-journal.ts";
import type { DownloadSource } from "./tree-download.ts";

/** A named source and its attributes. */
export interface NamedRemote {
  readonly path: TypedPath;
  readonly attr: Attr;
}

/** A source with its place. */
export type PlannedDownload = DownloadSource & PlannedTransfer;

/** Dependencies of a plan. */
export interface GetPlanDeps {
  readonly context: ClientContext;
  readonly journal: TransferJournal;
  /** The target as typed. */
  readonly target: string;
  /** The rule for skipped files; undefined to fetch all. */
  readonly wanted: Sameness | undefined;
  /** True when surplus entries of the target are to be found. */
  readonly isMirror: boolean;
}

/** Finds the place of each source. Rejects with ClientError for a target that cannot take them. */
export async function planGet(
  deps: GetPlanDeps,
  sources: readonly NamedRemote[],
): Promise<PlannedDownload[]> {
  const { target } = deps;
  requireWord(target);
  const isInto = isLocalFolder(target);
  if (
    !isInto &&
    (sources.length > 1 || (target.endsWith("/") && sources.some(({ attr }) => !isFolder(attr))))
  ) {
    throw new ClientError("USAGE", "is not a folder on this machine", {
      about: target,
      todo: `Make it first: mkdir ${shellWord(target)}`,
    });
  }
  const names = new Set<string>();
  const plan: PlannedDownload[] = [];
  for (const source of sources) {
    // The name comes from the typed path, never from the server's answer.
    const name = baseName(source.path.path);
    if (isInto && name === "" && sources.length > 1) {
      throw new ClientError("USAGE", `${formatRemotePath(source.path)} is a root and has no name`, {
        todo: "Fetch it alone, into a new folder: grove get -r / my-files",
      });
    }
    if (names.has(name)) throw new ClientError("USAGE", `two of them are called ${name}`);
    names.add(name);
    const place = { isInto, isAlone: sources.length === 1 };
    plan.push({ ...(await planOne(deps, source, place)), isMirror: deps.isMirror });
  }
  if (deps.isMirror) refuseOverlaps(plan.map(({ localFolder, localName }) => join(localFolder, localName)));
  return plan;
}

async function planOne(
  deps: GetPlanDeps,
  source: NamedRemote,
  { isInto, isAlone }: { readonly isInto: boolean; readonly isAlone: boolean },
): Promise<PlannedDownload> {
  const { context, journal, target, wanted } = deps;
  const { path, attr } = source;
  if (!isFolder(attr)) {
    const placed = placeAt(source, usualPlace(source, target, isInto));
    requireReplaceable(join(placed.localFolder, placed.localName));
    return { ...placed, sameness: wanted };
  }
  const pair: TransferPair = {
    verb: "get",
    cluster: await clusterName(context),
    local: resolveLocal(target),
    remote: { root: path.root, path: path.path },
  };
  const last = await journal.find(pair);
  const placed = usualPlace(source, target, isInto);
  // With several sources a folder goes under its own name, or one could lie in the other.
  const mayGoOn = last !== undefined && (wanted !== undefined || !last.isDone);
  if (mayGoOn && (isAlone || last.placed === placed)) {
    const found = folderIdAt(last.placed);
    // A run that never made the folder has put nothing there.
    const isThat = last.folderId === undefined ? isEmpty(last.placed) : last.folderId === found;
    if (found !== undefined && isThat) {
      const goesOn = last.isDone ? undefined : last;
      const record = goesOn ?? { ...begun(last.placed), folderId: found };
      const sameness = wanted ?? (last.isFresh ? BY_TIME : BY_BOTH);
      const isCutBefore = goesOn !== undefined;
      return { ...placeAt(source, last.placed), sameness, isCutBefore, run: { pair, record }, goesOn };
    }
  }
  return { ...placeAt(source, placed), sameness: wanted, run: { pair, record: begun(placed) } };
}

/** The record of a transfer that begins now. */
function begun(placed: string): TransferRecord {
  const isFresh = lstatSync(placed, { throwIfNoEntry: false }) === undefined;
  return { placed, folderId: undefined, isFresh, startedMs: systemClock.wallMs(), isDone: false };
}

function placeAt({ path, attr }: NamedRemote, local: string): DownloadSource {
  const folder = dirname(local);
  if (!isLocalFolder(folder)) {
    throw new ClientError("LOCAL_NOT_FOUND", `the folder ${folder} does not exist on this machine`, {
      todo: `Make it first: mkdir -p ${shellWord(folder)}`,
    });
  }
  return { root: path.root, path: path.path, attr, localFolder: folder, localName: basename(local) };
}

function usualPlace({ path }: NamedRemote, target: string, isInto: boolean): string {
  if (!isInto) return resolveLocal(target);
  const name = baseName(path.path);
  // A root has no name, so its content goes into the folder itself, also through a named link.
  return resolveLocal(name === "" ? realpathSync(target) : join(target, name));
}

function isEmpty(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

/**
 * Identifies a folder of this machine by its inode, so that another one of its name differs; undefined
 * without one. A device's number may change with a restart, so it does not count.
 */
export function folderIdAt(path: string): string | undefined {
  let stats: BigIntStats | undefined;
  try {
    stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    throw localFailure(error, path);
  }
  return stats?.isDirectory() === true ? String(stats.ino) : undefined;
}

function isLocalFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw localFailure(error, path);
  }
}
