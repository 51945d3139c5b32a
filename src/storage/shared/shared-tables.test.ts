// Tests that the shared engine forgets no table, no column and no key of SQLite's, and answers no statement
// unguarded.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { migrate } from "#storage/metadata/schema.ts";
import { RowCache } from "./row-cache.ts";
import { SHARED_TABLES } from "./shared-tables.ts";

/** Tables of one machine's: its counters, its passes, its directories of chunk files, roots that leave it or come. */
const OF_ONE_MACHINE = [
  "counter",
  "meta",
  "move_bucket",
  "open_directory",
  "root_move",
  "root_place",
  "sqlite_sequence",
];

test("every table, column and key of the local engine is in the shared one", () => {
  const db = new DatabaseSync(":memory:");
  migrate(db, "");
  const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as {
    name: string;
  }[];
  assert.deepEqual(
    tables.map(({ name }) => name).toSorted(),
    [...OF_ONE_MACHINE, ...SHARED_TABLES.map(({ name }) => name)].toSorted(),
  );
  const types = { BIGINT: "INTEGER", TEXT: "TEXT", BYTEA: "BLOB" };
  for (const { name, key, columns } of SHARED_TABLES) {
    const found = db.prepare('SELECT name, type, "notnull", pk FROM pragma_table_info(?)').all(name) as {
      name: string;
      type: string;
      notnull: number;
      pk: number;
    }[];
    const isKey = (column: string): boolean => key.includes(column);
    // SQLite calls the integer that is a row's number nullable.
    const told = ({ name: column, type, notnull, pk }: (typeof found)[0]): string =>
      `${column} ${type} ${notnull === 0 && pk === 0} ${pk > 0}`;
    const wanted = columns.map(
      (column) => `${column.name} ${types[column.type]} ${column.isNullable} ${isKey(column.name)}`,
    );
    assert.deepEqual(found.map(told).toSorted(), wanted.toSorted(), name);
  }
  db.close();
});

test("a statement of the commands that no guard knows cannot be prepared", () => {
  const cache = new RowCache(":memory:", 0);
  assert.throws(
    () => cache.db.prepare("SELECT count(*) FROM inode"),
    /no guard says what this statement needs/,
  );
  assert.throws(() => cache.db.prepare("DELETE FROM inode WHERE parent_id = ?"), /no guard says/);
  const read = cache.db.prepare("SELECT parent_id FROM inode WHERE id = ?");
  assert.throws(() => read.get(5), { name: "RowsMissing" });
  cache.accept({ facts: [{ kind: "inode", id: 5 }], rows: [] });
  assert.equal(read.get(5), undefined);
  cache.forget();
  assert.throws(() => read.get(5), { name: "RowsMissing" });
  cache.close();
});
