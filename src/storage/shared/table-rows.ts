// Rows of the shared tables between JSON, as PostgreSQL speaks it, and SQLite.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { SharedTable } from "./shared-tables.ts";

/** Rows as JSON has them, bytes as `\x` and digits. */
export interface JsonRow {
  readonly table: string;
  readonly row: Readonly<Record<string, unknown>>;
}

/** The last state of each row that a group has changed: keys of those that are gone, and whole rows. */
export interface TableEffects {
  readonly table: string;
  readonly gone: readonly object[];
  /** Rows whose keys the database cannot have yet. */
  readonly fresh?: readonly object[];
  readonly rows: readonly object[];
}

/** Statements of one table. */
export interface TableStatements {
  readonly table: SharedTable;
  /** Finds a row by its key, in the order of the table's columns. */
  readonly select: StatementSync;
  /** Inserts a row unless it is there. */
  readonly insert: StatementSync;
  /** Place within the key of an id that its root gives out once; -1 without one. */
  readonly idAt: number;
}

/** Columns with ids that roots give out, of inodes and chunk lists: their tables have fresh rows. */
export const GIVEN_OUT: Readonly<Record<string, string>> = {
  inode: "id",
  inline_content: "inode_id",
  file_chunk: "content_id",
  staging: "content_id",
  upload: "content_id",
  property: "inode_id",
};

/** Prepares them. */
export function tableStatements(
  table: SharedTable,
  prepare: (sql: string) => ReturnType<DatabaseSync["prepare"]>,
): TableStatements {
  const names = table.columns.map(({ name }) => name);
  const same = keyColumns(table).map((name) => `${name} = ?`);
  return {
    table,
    idAt: keyColumns(table).findIndex((name) => GIVEN_OUT[table.name] === name),
    select: prepare(`SELECT ${names.join(", ")} FROM ${table.name} WHERE ${same.join(" AND ")}`),
    insert: prepare(
      `INSERT INTO ${table.name} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})
       ON CONFLICT (${table.key.join(", ")}) DO NOTHING`,
    ),
  };
}

/** Puts a row that came as JSON into its table. */
export function insertJson({ table, insert }: TableStatements, row: Readonly<Record<string, unknown>>): void {
  const values: (string | number | Buffer | null)[] = [];
  for (const { name, type } of table.columns) {
    const value = row[name] as string | number | null;
    values.push(type === "BYTEA" ? Buffer.from(String(value).slice(2), "hex") : value);
  }
  insert.run(...values);
}

/** The key's columns in the order of the table. */
export function keyColumns({ key, columns }: SharedTable): string[] {
  return columns.map(({ name }) => name).filter((name) => key.includes(name));
}
