// The statements that read pages of a directory, one for each order.
import { ENTRY_COLUMNS } from "./inode-columns.ts";
import { FLAG_HAS_GRANTS } from "./schema.ts";

/** The variant of a statement. */
export interface ListingOrder {
  readonly by: "name" | "size" | "mtime";
  readonly isDescending: boolean;
  /** True after the first page. */
  readonly isContinued: boolean;
  /** True when the statement hides entries that an exclusion keeps from one user. */
  readonly isFiltered: boolean;
}

/** True for an entry that an exclusion keeps from the user who is its value; never for NULL. */
export const IS_KEPT_FROM = `((flags & ${FLAG_HAS_GRANTS}) <> 0 AND EXISTS (
  SELECT 1 FROM share_grant WHERE inode_id = inode.id AND username = ? AND excluded = 1))`;

const SORT_COLUMNS = { size: "size", mtime: "mtime_ms" } as const;

/**
 * SQL of a page of ENTRY_COLUMNS. Its values are, in this order: the directory; the start, as the name, or as
 * size or time twice and the name; the user of the filter; the limit.
 */
export function listingSql({ by, isDescending, isContinued, isFiltered }: ListingOrder): string {
  const order = isDescending ? "DESC" : "ASC";
  const compare = isDescending ? "<" : ">";
  const column = by === "name" ? undefined : SORT_COLUMNS[by];
  const after =
    column === undefined
      ? `AND name ${compare} ?`
      : `AND (${column} ${compare} ? OR (${column} = ? AND name > ?))`;
  return `SELECT ${ENTRY_COLUMNS} FROM inode WHERE parent_id = ? ${isContinued ? after : ""} ${isFiltered ? `AND NOT ${IS_KEPT_FROM}` : ""}
    ORDER BY ${column === undefined ? `name ${order}` : `${column} ${order}, name`} LIMIT ?`;
}
