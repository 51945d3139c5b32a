// Where each source of an upload goes: as its last run left it when that was cut, else by what the target is now.
import { realpathSync, statSync } from "node:fs";
import { basename, resolve as resolveLocal } from "node:path";
import { systemClock } from "#base/clock.ts";
import { canonicalName } from "#base/names.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { attrIfThere, isFolder } from "#client/connection/listing.ts";
import { childPath, type TypedPath } from "#client/connection/remote-path.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { COARSE_FILE_TIME_MS } from "#client/terminal/limits.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { BY_BOTH, type Sameness } from "./sameness.ts";
import type { PlannedTransfer } from "./transfer-frame.ts";
import {
  clusterName,
  type TransferJournal,
  type TransferPair,
  type TransferRecord,
} from "./transfer-journal.ts";
import type { UploadSource } from "./tree-upload.ts";

/** A file or folder that was named. */
export interface NamedSource {
  readonly path: string;
  readonly isFolder: boolean;
}

/** A source with its place. */
export type PlannedSource = UploadSource & PlannedTransfer;

/** What a plan is made from. */
export interface PutPlanDeps {
  readonly context: ClientContext;
  readonly cluster: Cluster;
  readonly journal: TransferJournal;
  readonly target: TypedPath;
  /** What is at the target. */
  readonly there: Attr | undefined;
  /** What people want left out; undefined when they want all sent. */
  readonly wanted: Sameness | undefined;
  /** True where nothing else is sent with it. */
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
    // Both: what it is called decides its place, and a link may lead elsewhere by now.
    local: [resolveLocal(source.path), realPath(source.path)].join("\0"),
    remote: { root: target.root, path: target.path },
  };
  const last = await journal.find(pair);
  const usual = usualPlace(source, target, isInto);
  // Beside others a folder goes where its name says, or one would lie in the other.
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

/** A transfer that begins now. */
function begun(placed: string, there: Attr | undefined): TransferRecord {
  const startedMs = systemClock.wallMs();
  return { placed, folderId: undefined, isFresh: there === undefined, startedMs, isDone: false };
}

/** True for the very folder that the earlier run filled, and not for another one that has got its name since: a run that never saw it has put nothing there. */
function isThat(there: Attr, { folderId }: TransferRecord): boolean {
  return isFolder(there) && (folderId === undefined ? there.childCount === 0n : there.id === folderId);
}

/**
 * What of a cut transfer need not be sent again. Where nothing was before it began, whatever is there has come from it, and is what the file
 * here still is unless that has changed since. Elsewhere it may also be older, so that the content decides.
 */
function leftOut({ isFresh, startedMs }: TransferRecord): Sameness {
  if (!isFresh) return BY_BOTH;
  return { byTime: true, byChecksum: false, checksumSinceMs: startedMs - COARSE_FILE_TIME_MS };
}

/** Inside a folder that is there, under its own name; else as what was named. */
function usualPlace(source: NamedSource, target: TypedPath, isInto: boolean): string {
  if (!isInto) return target.path;
  // `put .` and `put ..` have a name too: that of the folder they lead to.
  const name = basename(resolveLocal(source.path));
  if (name === "") {
    throw new ClientError("USAGE", "the root of this machine has no name", {
      todo: "Name a new folder as the target.",
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

/** True for a folder of this machine. Throws ClientError for what is not there. */
export function isLocalFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw localFailure(error, path);
  }
}
