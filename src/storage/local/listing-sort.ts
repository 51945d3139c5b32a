// Sorts a directory and keeps one page of it, in slices within one snapshot of its own connection; runs in
// the listing thread.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { ENTRY_COLUMNS, type EntryRow, type Row } from "#storage/metadata/inode-columns.ts";
import {
  INODE_BY_ID,
  limitOf,
  listable,
  ownShares,
  type PageRows,
  SHARES_OF_INODE,
} from "#storage/metadata/list-page.ts";
import { IS_KEPT_FROM } from "#storage/metadata/listing-sql.ts";
import { readPageToken, sortOf } from "#storage/metadata/page-token.ts";
import type { SortedColumn, SortedQuery } from "./listing-messages.ts";

/** Entries read in one slice while a larger directory is sorted. */
export const SORTED_SLICE_ROWS = 2_048;

/** Result of a listing: its rows, or "stale" when access has changed since the request. */
export type SortedRows = PageRows | "stale";

type SliceRow = [name: string, id: number, value: number, isBehind: number, isKept: number];

const COLUMN_OF = { size: "size", mtime: "mtime_ms" } as const satisfies Record<SortedColumn, string>;

/** A connection that sorts one listing at a time. */
export class ListingSort {
  readonly #db: DatabaseSync;
  readonly #version: StatementSync;
  readonly #inode: StatementSync;
  readonly #entry: StatementSync;
  readonly #grants: StatementSync;
  readonly #slices: Readonly<Record<SortedColumn, StatementSync>>;

  constructor(db: DatabaseSync) {
    const prepare = (sql: string): StatementSync => {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    this.#db = db;
    this.#version = prepare("SELECT access_version FROM root WHERE owner = ?");
    this.#inode = prepare(INODE_BY_ID);
    this.#entry = prepare(`SELECT ${ENTRY_COLUMNS} FROM inode WHERE id = ?`);
    this.#grants = prepare(SHARES_OF_INODE);
    const slice = (by: SortedColumn): StatementSync =>
      prepare(
        `SELECT name, id, ${COLUMN_OF[by]}, name > ?, ${IS_KEPT_FROM} FROM inode WHERE parent_id = ? AND name > ?
         ORDER BY name LIMIT ${SORTED_SLICE_ROWS}`,
      );
    this.#slices = { size: slice("size"), mtime: slice("mtime") };
  }

  /** Sorts; yields after each slice. Throws the errors of `listable` and of SQLite. */
  *rows(query: SortedQuery): Generator<undefined, SortedRows> {
    this.#db.exec("BEGIN");
    try {
      const version = this.#version.get(query.owner) as unknown as [number] | undefined;
      if (version?.[0] !== query.accessVersion) return "stale";
      listable((id) => this.#inode.get(id) as Row | undefined, query.directoryId, query);
      const best = yield* this.#best(query);
      const rows = best.map((id) => this.#entry.get(id) as unknown as EntryRow);
      return { rows, own: ownShares(rows, this.#grants) };
    } finally {
      this.#db.exec("COMMIT");
    }
  }

  close(): void {
    this.#db.close();
  }

  *#best(query: SortedQuery): Generator<undefined, readonly number[]> {
    const { directoryId, sort, hiddenFrom = null } = query;
    const [by, isDescending] = sortOf(sort);
    const from = readPageToken(query.pageToken, directoryId, sort);
    const slices = this.#slices[by === "size" ? "size" : "mtime"];
    const page = new BestEntries(limitOf(query) + 1, isDescending);
    for (let after = ""; ; ) {
      const values = [from?.name ?? "", hiddenFrom, directoryId, after];
      const rows = slices.all(...values) as unknown as SliceRow[];
      for (const [, id, value, isBehind, isKept] of rows) {
        if (isKept === 1) continue;
        if (
          from === undefined ||
          page.precedes(from.value, value) ||
          (value === from.value && isBehind === 1)
        ) {
          page.add(id, value);
        }
      }
      if (rows.length < SORTED_SLICE_ROWS) return page.take();
      after = rows.at(-1)?.[0] ?? after;
      yield;
    }
  }
}

/** The first entries of an order, among entries added by name; it holds at most twice as many. */
class BestEntries {
  readonly #count: number;
  readonly #isDescending: boolean;
  #entries: { readonly id: number; readonly value: number }[] = [];
  /** Entries after this value are not on the page. */
  #bound: number | undefined;

  constructor(count: number, isDescending: boolean) {
    this.#count = count;
    this.#isDescending = isDescending;
  }

  /** True when a value comes before another in this order. */
  precedes(value: number, other: number): boolean {
    return this.#isDescending ? value > other : value < other;
  }

  add(id: number, value: number): void {
    if (this.#bound !== undefined && !this.precedes(value, this.#bound)) return;
    this.#entries.push({ id, value });
    if (this.#entries.length >= 2 * this.#count) this.#cut();
  }

  /** Their ids, in order. */
  take(): number[] {
    this.#cut();
    return this.#entries.map(({ id }) => id);
  }

  /** The sort is stable, so equal entries stay in the order of arrival: by name. */
  #cut(): void {
    const sign = this.#isDescending ? -1 : 1;
    this.#entries = this.#entries.toSorted((a, b) => sign * (a.value - b.value)).slice(0, this.#count);
    if (this.#entries.length === this.#count) this.#bound = this.#entries.at(-1)?.value;
  }
}
