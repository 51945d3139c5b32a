// Plans where each source of an upload goes: as a cut run left it, else by the target.
import { realpathSync, statSync } from "node:fs";
import { basename, resolve as resolveLocal } from "node:path";
import { systemClock } from "#base/clock.ts";
import { canonicalName, nameProblem } from "#base/names.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { attrIfThere, isFolder } from "#client/connection/listing.ts";
import { childPath, type TypedPath } from "#client/connection/remote-path.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { COARSE_FILE_TIME_MS } from "#client/terminal/limits.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { requireWord } from "./local-source.ts";
import { BY_BOTH, type Sameness } from "./sameness.ts";
import type { PlannedTransfer } from "./transfer-frame.ts";
import {
  clusterName,
  type TransferJournal,
  type TransferPair,
  type TransferRecord,
} from "./transfer-journal.ts";
import type { UploadSource } from "./tree-upload.ts";

/** A named file or folder. */
export interface NamedSource {
  readonly path: string;
  readonly isFolder: boolean;
}

/** A source with its place. */
export type PlannedSource = UploadSource & PlannedTransfer;

/** Dependencies of a plan. */
export interface PutPlanDeps {
  readonly context: ClientContext;
  readonly cluster: Cluster;
  readonly journal: TransferJournal;
  readonly target: TypedPath;
  /** The attributes of the target. */
  readonly there: Attr | undefined;
  /** The rule for skipped files; undefined to send all. */
  readonly wanted: Sameness | undefined;
  /** True for the only source of the command. */
  readonly isAlone: boolean;
}

/** Finds the place of one source. Rejects with GroveError or ClientError. */
export async function planPut(deps: PutPlanDeps, source: NamedSource): Promise<PlannedSource> {
  const { context, cluster, journal, target, there, wanted, isAlone } = deps;
  const isInto = there !== undefined && isFolder(there);
  const look = (path: string): Promise<Attr | undefined> =>
    path === target.path ? Promise.resolve(there) : attrIfThere(cluster, { root: target.root, path });
  if (!source.isFolder) {
    const remotePath = usualPlace(source, target, isInto);
    if (wanted === undefined) return { ...source, remotePath };
    return { ...source, remotePath, sameness: wanted, there: await look(remotePath) };
  }
  const pair: TransferPair = {
    verb: "put",
    cluster: await clusterName(context),
    // Both count: the name decides the place, and a link may lead elsewhere by now.
    local: [resolveLocal(source.path), realPath(source.path)].join("\0"),
    remote: { root: target.root, path: target.path },
  };
  const last = await journal.find(pair);
  const usual = usualPlace(source, target, isInto);
  // With several sources a folder goes under its own name, or one could lie in the other.
  const mayGoOn = last !== undefined && (wanted !== undefined || !last.isDone);
  if (mayGoOn && (isAlone || last.placed === usual)) {
    const found = await look(last.placed);
    if (found !== undefined && isThat(found, last)) {
      const goesOn = last.isDone ? undefined : last;
      const record = goesOn ?? { ...begun(last.placed, found), folderId: found.id };
      const sameness = wanted ?? leftOut(last);
      return { ...source, remotePath: last.placed, sameness, there: found, run: { pair, record }, goesOn };
    }
  }
  const found = await look(usual);
  const run = { pair, record: begun(usual, found) };
  return { ...source, remotePath: usual, sameness: wanted, there: found, run };
}

/** The record of a transfer that begins now. */
function begun(placed: string, there: Attr | undefined): TransferRecord {
  const startedMs = systemClock.wallMs();
  return { placed, folderId: undefined, isFresh: there === undefined, startedMs, isDone: false };
}

/**
 * True for the folder that the earlier run filled, not for another one of its name. A run that never made the
 * folder has put nothing there.
 */
function isThat(there: Attr, { folderId }: TransferRecord): boolean {
  return isFolder(there) && (folderId === undefined ? there.childCount === 0n : there.id === folderId);
}

/**
 * The rule for files that a cut transfer need not send again. In a fresh target everything came from it, so
 * only later changes count. Elsewhere files may be older, so the content decides.
 */
function leftOut({ isFresh, startedMs }: TransferRecord): Sameness {
  if (!isFresh) return BY_BOTH;
  return { byTime: true, byChecksum: false, checksumSinceMs: startedMs - COARSE_FILE_TIME_MS };
}

/** Inside an existing folder under the source's own name; else the target itself. */
function usualPlace(source: NamedSource, target: TypedPath, isInto: boolean): string {
  if (!isInto) return target.path;
  // `put .` and `put ..` have a name too: that of the folder they lead to.
  const name = basename(resolveLocal(source.path));
  if (name === "") {
    throw new ClientError("USAGE", "the root of this machine has no name", {
      todo: "Name a new folder as the target.",
    });
  }
  const problem = nameProblem(name);
  if (problem !== undefined) {
    throw new ClientError("USAGE", `the server cannot store this name: ${problem}`, {
      about: source.path,
      todo: "Send it alone, with another name as the target.",
    });
  }
  return childPath(target.path, canonicalName(name));
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw localFailure(error, path);
  }
}

/** True for a folder of this machine. Throws ClientError for a missing path. */
export function isLocalFolder(path: string): boolean {
  requireWord(path);
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw localFailure(error, path);
  }
}
