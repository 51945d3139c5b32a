// What FileServers tell of files, folders and locks, as resources of WebDAV.
import { splitPath } from "#base/names.ts";
import type { DavLock, DavResource, DeadProperty, PropertyChange } from "#door/webdav/resource.ts";
import { storedOwner } from "#door/webdav/stored-xml.ts";
import { type Attr, Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { LockInfo } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { RealPlace } from "./places.ts";

/** A lock as a program at a door sees it. */
export function davLockOf(lock: LockInfo, { prefix }: RealPlace): DavLock {
  return {
    token: lock.token,
    root: [...prefix, ...splitPath(lock.path)],
    scope: lock.shared ? "shared" : "exclusive",
    isDeep: lock.deep,
    owner: storedOwner(lock.note),
    secondsLeft: lock.secondsLeft,
  };
}

/** A resource at a path, with the locks among these that hold there. */
export function resourceOf(
  path: readonly string[],
  attr: Attr,
  locks: readonly DavLock[],
  mayHaveProperties = true,
): DavResource {
  const changedMs = Number(attr.mtimeMs);
  return {
    path,
    isCollection: attr.kind === Kind.DIRECTORY,
    size: Number(attr.size),
    // Grove keeps no time of making: the earlier of its two times is the nearest.
    createdMs: Math.min(changedMs, Number(attr.ctimeMs)),
    changedMs,
    etag: attr.etag,
    mayHaveProperties,
    locks: locks.length === 0 ? locks : locks.filter((lock) => covers(lock, path)),
  };
}

/** A folder that is there for the way alone. */
export function virtualResource(path: readonly string[]): DavResource {
  const plain = { size: 0, createdMs: 0, changedMs: 0, etag: "way", locks: [] };
  return { path, isCollection: true, mayHaveProperties: false, ...plain };
}

function covers({ root, isDeep }: DavLock, path: readonly string[]): boolean {
  if (root.length > path.length || (!isDeep && root.length < path.length)) return false;
  return root.every((name, index) => path[index] === name);
}

/** A change of a dead property as a FileServer takes it. */
export function editOf(change: PropertyChange): {
  readonly property: Partial<DeadProperty>;
  remove: boolean;
} {
  if (change.kind === "set") return { property: change.property, remove: false };
  return { property: { namespace: change.namespace, name: change.name }, remove: true };
}
