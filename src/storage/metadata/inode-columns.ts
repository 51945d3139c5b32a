// The columns of inode rows that reads select, and their conversion to inodes.
import type { Inode, InodeId } from "#storage/contract/inode.ts";
import { FLAG_DAMAGED, FLAG_HAS_GRANTS, KIND_DIRECTORY } from "./schema.ts";

/** Columns in the order in which `toInode` reads them; rows come as arrays, at half the cost of objects. */
export const COLUMNS =
  "id, parent_id, name, kind, size, child_count, mtime_ms, ctime_ms, version, crc32, created_by, flags, content_id";
/** A row of these columns. */
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
/** The inode of a row; createdBy is the owner where the row has none. */
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

/** Reads a small file's bytes: a damaged page may give any type, and its bytes then fail their checksum. */
export const SELECT_INLINE = "SELECT CAST(data AS BLOB) AS data FROM inline_content WHERE inode_id = ?";

/**
 * Columns of an entry of a known directory, three of them in one number: each column costs as much as the
 * row's look-up. Flags are below 64, checksums below 2^32, so the number is exact.
 */
export const ENTRY_COLUMNS =
  "id, name, crc32 * 128 + flags * 2 + kind, size, child_count, mtime_ms, ctime_ms, version, created_by";
/** A row of these columns. */
export type EntryRow = [number, string, number, number, number, number, number, number, string | null];

/** The inode of an entry's row. */
export function entryInode(row: EntryRow, parentId: InodeId, owner: string): Inode {
  const packed = row[2];
  const crc32 = Math.floor(packed / 128);
  return {
    id: row[0],
    parentId,
    name: row[1],
    kind: isEntryDirectory(row) ? "directory" : "file",
    sizeBytes: row[3],
    childCount: row[4],
    mtimeMs: row[5],
    ctimeMs: row[6],
    version: row[7],
    crc32,
    createdBy: row[8] ?? owner,
    damaged: (entryFlags(row) & FLAG_DAMAGED) !== 0,
  };
}

/** True for a directory's row. */
export function isEntryDirectory(row: EntryRow): boolean {
  return row[2] % 2 === KIND_DIRECTORY;
}

/** True when grants or exclusions hang on the entry itself. */
export function entryHasGrants(row: EntryRow): boolean {
  return (entryFlags(row) & FLAG_HAS_GRANTS) !== 0;
}

function entryFlags(row: EntryRow): number {
  return (row[2] % 128) >> 1;
}

/** True when grants or exclusions hang on the inode itself. */
export function hasGrants(row: Row): boolean {
  return (row[11] & FLAG_HAS_GRANTS) !== 0;
}
