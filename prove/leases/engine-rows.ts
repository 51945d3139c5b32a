// Rows of the shared engine as statements of moves ask for them and write them, in memory.
import type { StatementSync } from "node:sqlite";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { MOVE_BUCKET } from "#storage/shared/arrival-schema.ts";
import { SHARED_TABLES } from "#storage/shared/shared-tables.ts";
import {
  type JsonRow,
  keyColumns,
  type TableStatements,
  tableStatements,
} from "#storage/shared/table-rows.ts";
import { StoredRoots } from "./stored-roots.ts";
import type { UnpackedRows } from "./unpacked-rows.ts";

/** Where ids begin that the engine's own commits give out: above the ranges of all processes. */
const OWN_IDS_FROM = 2 ** 50;
const ID_RANGE = 2 ** 32;

/** A row by its columns. */
export type Row = Record<string, unknown>;
/** Values of a statement. */
export type Values = readonly unknown[];
/** A statement by how it begins, and what it does. */
export type Statement = readonly [begins: string, run: (values: Values) => readonly object[]];

/** The tables that have rows of roots, and what statements need of them. */
export class EngineRows {
  readonly stored: StoredRoots;
  readonly #tables: ReadonlyMap<string, TableStatements>;
  readonly #prepared = new Map<string, StatementSync>();
  #ranges = 0;

  constructor(newName: () => string) {
    this.stored = new StoredRoots(newName, OWN_IDS_FROM);
    const { db } = this.stored;
    this.#tables = new Map(
      [...SHARED_TABLES, MOVE_BUCKET].map((table) => [
        table.name,
        tableStatements(table, (sql) => db.prepare(sql)),
      ]),
    );
  }

  /** As nextval of the sequence, times the size of a range. */
  idRange(): number {
    return ID_RANGE * ++this.#ranges;
  }

  all(sql: string, ...values: (number | string)[]): Row[] {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.stored.db.prepare(sql);
      this.#prepared.set(sql, statement);
    }
    return statement.all(...values);
  }

  /** Rows of a table with a column in one of the ranges, as JSON has them. */
  between(table: string, column: string, [lows, highs]: readonly [unknown, unknown]): JsonRow[] {
    const highest = highs as readonly number[];
    const found = (lows as readonly number[]).flatMap((low, at) =>
      this.all(`SELECT * FROM ${table} WHERE ${column} BETWEEN ? AND ?`, low, highest[at] ?? 0),
    );
    return found.map((row) => this.json(table, row));
  }

  json(table: string, row: Row): JsonRow {
    const shown = { ...row };
    for (const { name, type } of this.#statements(table).table.columns) {
      if (type === "BYTEA") shown[name] = `\\x${Buffer.from(row[name] as Uint8Array).toString("hex")}`;
    }
    return { table, row: shown };
  }

  /** Positions in the ranges of lists. */
  positions([contents, lows, highs]: readonly [unknown, unknown, unknown]): JsonRow[] {
    const sql = "SELECT * FROM file_chunk WHERE content_id = ? AND position BETWEEN ? AND ?";
    const [from, to] = [lows as readonly number[], highs as readonly number[]];
    return (contents as readonly number[])
      .flatMap((content, at) => this.all(sql, content, from[at] ?? 0, to[at] ?? 0))
      .map((row) => this.json("file_chunk", row));
  }

  /** Deletes and then puts rows of a table. Throws for one that is there and was said to be new. */
  write({ table, gone, rows, fresh }: UnpackedRows): void {
    const { table: shape, insert } = this.#statements(table);
    const keys = keyColumns(shape);
    const same = `FROM ${table} WHERE ${keys.map((key) => `${key} = ?`).join(" AND ")}`;
    const keyOf = (row: Row): (number | string)[] => keys.map((key) => row[key] as number | string);
    for (const row of [...gone, ...rows]) this.all(`DELETE ${same}`, ...keyOf(row));
    for (const row of fresh) {
      if (this.all(`SELECT 1 ${same}`, ...keyOf(row)).length > 0)
        throw Object.assign(new Error(`a row of ${table} is there already`), { code: "23505" });
    }
    for (const row of [...rows, ...fresh])
      insert.run(...shape.columns.map(({ name }) => row[name] as number | string));
  }

  /** Counts rows of the sum of a moving root. */
  sum(number: number): Row[] {
    return this.all("SELECT checksum, row_count FROM move_bucket WHERE number = ? AND kind = 3", number);
  }

  /** Removes all rows of a root but its own, its lists and its chunks. */
  drop(number: number): void {
    const base = number * ROOT_STRIDE;
    for (const [table, column] of [
      ["inline_content", "inode_id"],
      ["purging", "inode_id"],
      ["purging", "content_id"],
      ["inode", "id"],
    ] as const)
      this.all(`DELETE FROM ${table} WHERE ${column} BETWEEN ? AND ?`, base, base + ROOT_STRIDE - 1);
  }

  /** Marks chunks as without a file. */
  garbage(chunkIds: readonly number[]): void {
    let sequence = this.idRange();
    for (const id of chunkIds)
      this.all("INSERT INTO garbage (sequence, chunk_id) VALUES (?, ?)", ++sequence, id);
  }

  #statements(table: string): TableStatements {
    const statements = this.#tables.get(table);
    if (statements === undefined) throw new Error(`unknown: ${table}`);
    return statements;
  }
}
