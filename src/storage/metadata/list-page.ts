// Makes a page of a directory from its rows, on any thread.
import type { StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { LIST_PAGE_MAX } from "#base/limits.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { ListPage, ListQuery, OwnShares } from "#storage/contract/storage.ts";
import { COLUMNS, type EntryRow, entryHasGrants, entryInode, type Row } from "./inode-columns.ts";
import { pageToken, sortOf } from "./page-token.ts";
import { KIND_DIRECTORY } from "./schema.ts";
import type { ShareRow } from "./share-resolution.ts";
import { CHAIN_MAX } from "./unit-of-work.ts";

/** Largest directory that is listed in another order than by name. */
export const LIST_SORTED_ENTRIES_MAX = 50_000;

/** Reads an inode by its id. */
export const INODE_BY_ID: string = `SELECT ${COLUMNS} FROM inode WHERE id = ?`;

/** Reads the shares on an inode, by username. */
export const SHARES_OF_INODE =
  "SELECT username, excluded FROM share_grant WHERE inode_id = ? ORDER BY username";

/** The rows of a page, plus one when more follow, and the shares on the entries themselves. */
export interface PageRows {
  readonly rows: readonly EntryRow[];
  readonly own: readonly (readonly [InodeId, OwnShares])[];
}

/** Assembles a page; its token names the start of the next one. */
export function listPage(
  { rows, own }: PageRows,
  directoryId: InodeId,
  query: ListQuery,
  owner: string,
): ListPage {
  const limit = limitOf(query);
  const entries = rows.slice(0, limit).map((row) => entryInode(row, directoryId, owner));
  const last = rows.length > limit ? entries.at(-1) : undefined;
  const [by] = sortOf(query.sort);
  const value = last === undefined || by === "name" ? 0 : by === "size" ? last.sizeBytes : last.mtimeMs;
  return {
    entries,
    own: new Map(own),
    nextPageToken: last && pageToken(directoryId, query.sort, { name: last.name, value }),
  };
}

/** The shares on those entries that have any, by the statement SHARES_OF_INODE. */
export function ownShares(rows: readonly EntryRow[], statement: StatementSync): PageRows["own"] {
  return rows
    .filter((row) => entryHasGrants(row))
    .map(([id]) => {
      const shares = statement.all(id) as unknown as ShareRow[];
      const usersWith = (flag: number): string[] =>
        shares.flatMap(([username, excluded]) => (excluded === flag ? [username] : []));
      return [id, { shared: usersWith(0), excluded: usersWith(1) }];
    });
}

/** Requested entries of a page, from 1 to LIST_PAGE_MAX. */
export function limitOf({ limit }: Pick<ListQuery, "limit">): number {
  return Math.min(Math.max(1, Math.trunc(limit)), LIST_PAGE_MAX);
}

/** Reads an inode; undefined when there is none. */
export type ReadInode = (id: InodeId) => Row | undefined;

/** The row of an inode below a root. Throws NO_SUCH_PATH for a missing or detached one. */
export function reachable(read: ReadInode, id: InodeId): Row {
  const found = read(id);
  let row = found;
  for (let level = 0; row !== undefined && row[1] !== null && level < CHAIN_MAX; level++) row = read(row[1]);
  // Of all inodes without a parent only a root's own directory has an empty name.
  if (found === undefined || row?.[2] !== "") throw noSuchInode();
  return found;
}

/** The refusal for a missing or detached inode. */
export function noSuchInode(): GroveError {
  return new GroveError("NO_SUCH_PATH", "no such file or directory");
}

/**
 * The row of a directory to be listed in this order. Throws NO_SUCH_PATH, NOT_DIRECTORY, and BAD_ARGUMENT for
 * too many entries.
 */
export function listable(read: ReadInode, id: InodeId, { sort }: Pick<ListQuery, "sort">): Row {
  const directory = reachable(read, id);
  if (directory[3] !== KIND_DIRECTORY) throw new GroveError("NOT_DIRECTORY", "not a directory");
  if (sortOf(sort)[0] !== "name" && directory[5] > LIST_SORTED_ENTRIES_MAX) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `a directory with more than ${LIST_SORTED_ENTRIES_MAX} entries is listed by name only`,
      { metadata: { limit: String(LIST_SORTED_ENTRIES_MAX) } },
    );
  }
  return directory;
}
