// Builds Attr messages from inodes as plain objects with every field set, since GetAttr and ListDir are hot.

import { etagOf, type Inode, inodeIdText } from "#storage/contract/inode.ts";
import { type Attr, Kind, Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";

/** What an Attr says beyond the inode itself. */
export interface AttrScope {
  readonly owner: string;
  readonly shared: readonly string[];
  /** What the caller may do there. */
  readonly permissions: readonly Perm[];
}

const OWNER_PERMISSIONS: readonly Perm[] = [Perm.READ, Perm.WRITE, Perm.DELETE];
const READER_PERMISSIONS: readonly Perm[] = [Perm.READ];
const SHAREE_PERMISSIONS: readonly Perm[] = [Perm.READ, Perm.WRITE];

/**
 * A reader's permissions: sharees read and write; owners, and heirs with that right, delete (spec 5.4). Some
 * members of a group read alone.
 */
export function permissionsOf(caller: {
  readonly isOwner: boolean;
  readonly heir?: { readonly mayDelete: boolean; readonly readOnly?: boolean } | undefined;
}): readonly Perm[] {
  if (caller.heir?.readOnly === true) return READER_PERMISSIONS;
  return caller.isOwner || caller.heir?.mayDelete === true ? OWNER_PERMISSIONS : SHAREE_PERMISSIONS;
}

/** The Attr of an inode at a canonical path. Messages share its lists: treat it as immutable. */
export function attrMessage(inode: Inode, path: string, scope: AttrScope): Attr {
  // A literal with $typeName encodes as a message; create() would visit every field again.
  return {
    $typeName: "grove.v1.Attr",
    id: inodeIdText(inode.id),
    name: inode.name,
    path,
    kind: inode.kind === "file" ? Kind.FILE : Kind.DIRECTORY,
    size: BigInt(inode.sizeBytes),
    mtimeMs: BigInt(inode.mtimeMs),
    ctimeMs: BigInt(inode.ctimeMs),
    owner: scope.owner,
    shared: scope.shared as string[],
    etag: etagOf(inode),
    crc32: inode.crc32,
    childCount: BigInt(inode.childCount),
    root: scope.owner,
    parentId: inode.parentId === undefined ? "" : inodeIdText(inode.parentId),
    createdBy: inode.createdBy,
    myPermissions: scope.permissions as Perm[],
    damaged: inode.damaged,
  };
}

/** The path of an entry of a directory. */
export function childPath(directoryPath: string, name: string): string {
  return directoryPath === "/" ? `/${name}` : `${directoryPath}/${name}`;
}
