// The columns in which reads get inodes, and what is made of them.
import type { Inode } from "./inode.ts";
import { FLAG_DAMAGED, FLAG_HAS_GRANTS, KIND_DIRECTORY } from "./schema.ts";

/** Columns in the order in which `toInode` reads them; rows come as arrays, which costs half of what objects do. */
export const COLUMNS =
  "id, parent_id, name, kind, size, child_count, mtime_ms, ctime_ms, version, crc32, created_by, flags, content_id";
/** One such row. */
export type Row = [
  number,
  number | null,
  string,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  string | null,
  number,
  number | null,
];
/** The inode of a row; createdBy is the owner where the row names nobody. */
export function toInode(row: Row, owner: string): Inode {
  return {
    id: row[0],
    parentId: row[1] ?? undefined,
    name: row[2],
    kind: row[3] === KIND_DIRECTORY ? "directory" : "file",
    sizeBytes: row[4],
    childCount: row[5],
    mtimeMs: row[6],
    ctimeMs: row[7],
    version: row[8],
    crc32: row[9],
    createdBy: row[10] ?? owner,
    damaged: (row[11] & FLAG_DAMAGED) !== 0,
  };
}

/** True when shares hang on the inode itself. */
export function hasGrants(row: Row): boolean {
  return (row[11] & FLAG_HAS_GRANTS) !== 0;
}
