// Copies and moves to where something may be: what is there makes way in the last step (RFC 4918, section 9.8.4).
import { randomBytes } from "node:crypto";
import { GroveError } from "#base/errors.ts";
import { joinPath, splitPath } from "#base/names.ts";
import { type Cluster, ONCE, type Server } from "#client/connection/cluster.ts";
import { attrIfThere } from "#client/connection/listing.ts";
import type { ChangeTerms, DavTarget } from "#door/webdav/resource.ts";
import { type Attr, Kind, OnConflict, Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { RealPlace } from "./places.ts";
import { shownTokens } from "./shown-tokens.ts";
import { askRoom } from "./write-file.ts";

/** What a copy or a move expects of its source and target, and what becomes of what is there. */
export interface Versions {
  readonly onConflict: OnConflict;
  readonly ifMatch: string;
  readonly targetIfMatch: string;
}

/** A copy or a move. */
export interface Coming {
  readonly cluster: Cluster;
  readonly source: Attr;
  readonly target: Pick<DavTarget, "ifMatch" | "mayReplace"> & { readonly place: RealPlace };
  readonly terms: ChangeTerms;
  readonly act: (versions: Versions) => Promise<void>;
  /** For a copy of several calls: makes it under another name in the same folder. */
  readonly copyAs?: (name: string) => Promise<void>;
}

/** Copies or moves. In one call a file replaces a file for good; what else is there goes to the trash as it comes. */
export async function putInPlace(coming: Coming): Promise<void> {
  const { cluster, source, target, terms, act, copyAs } = coming;
  const { place, mayReplace, ifMatch: targetIfMatch = "" } = target;
  const { ifMatch = "" } = terms;
  const present = mayReplace ? await attrIfThere(cluster, place) : undefined;
  if (present === undefined) {
    const isFolder = source.kind === Kind.DIRECTORY;
    if (copyAs !== undefined && isFolder) {
      // Half a folder under its own name would look like a whole one.
      if (await mayRemoveIn(coming)) return await copyBeside(coming, copyAs, OnConflict.FAIL);
      // It stays where it may not be removed, so that one without room is not begun.
      await askRoom(cluster, place, source.size, terms.tokens);
    }
    return await act({ onConflict: OnConflict.FAIL, ifMatch, targetIfMatch });
  }
  const isFileForFile = present.kind === Kind.FILE && source.kind === Kind.FILE;
  const mayRemove = present.myPermissions.includes(Perm.DELETE);
  if (copyAs !== undefined && mayRemove) return await copyBeside(coming, copyAs, OnConflict.TRASH);
  // Who may not remove what is there could not remove a copy beside it either, but may write over a file.
  if (copyAs !== undefined && !isFileForFile) {
    throw new GroveError("NOT_OWNER", "permission denied: only the owner may replace a folder, or by one");
  }
  await act({ onConflict: isFileForFile ? OnConflict.REPLACE : OnConflict.TRASH, ifMatch, targetIfMatch });
}

/** True where a copy that has failed could be removed again. */
async function mayRemoveIn({ cluster, target }: Coming): Promise<boolean> {
  const { root, path } = target.place;
  const folder = await attrIfThere(cluster, { root, path: joinPath(splitPath(path).slice(0, -1)) });
  return folder?.myPermissions.includes(Perm.DELETE) === true;
}

/** What is there, or nothing, stays as it is until the copy is whole. */
async function copyBeside(
  coming: Coming,
  copyAs: (name: string) => Promise<void>,
  onConflict: OnConflict,
): Promise<void> {
  const { place, ifMatch: targetIfMatch = "" } = coming.target;
  const { root, path } = place;
  const name = `.grove-copy-${randomBytes(8).toString("hex")}`;
  const copied = path.slice(0, path.lastIndexOf("/") + 1) + name;
  try {
    await copyAs(name);
    const request = { root, path: copied, targetPath: path, onConflict, targetIfMatch };
    await onServer(coming, (server) => server.files.rename(request, server.unary));
  } catch (error) {
    await onServer(coming, (server) =>
      server.files.deleteFile({ root, path: copied, recursive: true }, server.unary),
    ).catch(() => undefined);
    throw error;
  }
}

function onServer<T>(
  { cluster, target, terms }: Coming,
  operation: (server: Server) => Promise<T>,
): Promise<T> {
  return cluster.runAt(target.place, ONCE, (server) => operation(shownTokens(server, terms.tokens)));
}
