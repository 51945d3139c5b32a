// Tests that rows of the commands' own inserts go to the database as reading them back tells.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { ContentRows } from "#storage/metadata/content-rows.ts";
import { InodeRows } from "#storage/metadata/inode-rows.ts";
import { migrate } from "#storage/metadata/schema.ts";
import { Ledger } from "#storage/metadata/unit-of-work.ts";
import { madeRow } from "./made-rows.ts";
import { RowCache } from "./row-cache.ts";
import { SHARED_TABLES } from "./shared-tables.ts";
import type { TableEffects } from "./table-rows.ts";

const DIRECTORY = 2 ** 32 + 1;

/** What the group's effects are, and the same rows as the cache reads them. */
function effectsOf(cache: RowCache, run: () => void): { sent: TableEffects[]; read: unknown[] } {
  const sent = cache.change(run);
  const read = sent.map(({ table, fresh = [] }) => {
    const { key = [], columns = [] } = SHARED_TABLES.find(({ name }) => name === table) ?? {};
    const names = columns.map(({ name }) => name).join(", ");
    const select = cache.preparePlain(`SELECT ${names} FROM ${table} WHERE ${key[0]} = ?`);
    return fresh.map((row) => select.get((row as Record<string, number>)[key[0] as string] as number));
  });
  cache.end("COMMIT");
  return { sent, read };
}

test("files and directories that are made have all columns, with the values that the cache has of them", (t) => {
  const cache = new RowCache(":memory:", 0);
  t.after(() => cache.close());
  const ledger = new Ledger(cache.db);
  const content = new ContentRows(cache.db, ledger);
  const inodes = new InodeRows(cache.db, ledger, content);
  const columns = SHARED_TABLES.find(({ name }) => name === "root")?.columns ?? [];
  const root = {
    ...Object.fromEntries(columns.map(({ name }) => [name, 0])),
    number: 1,
    owner: "ada@example.com",
    root_id: "R",
    directory_id: DIRECTORY,
    next_id: 2,
  };
  cache.accept({ rows: [{ table: "root", row: root }], facts: [{ kind: "children", id: DIRECTORY }] });
  const made = (id: number, name: string) => ({
    id,
    parentId: DIRECTORY,
    name,
    kind: id % 2,
    size: 2 ** 40 + id,
    crc32: 2 ** 32 - 1,
    mtimeMs: -1,
    ctimeMs: 1_790_000_000_000,
    contentId: id === 2 ** 32 + 4 ? id : null,
    createdBy: id === 2 ** 32 + 3 ? null : "ada@example.com",
  });
  const first = Buffer.from("first");
  const { sent, read } = effectsOf(cache, () => {
    for (const [at, name] of ["plain", "\u{1f333} ä", 'a "quoted" \\ one'].entries()) {
      assert.equal(inodes.insert(made(2 ** 32 + 2 + at, name)), true);
      content.putInline(2 ** 32 + 2 + at, first);
    }
    assert.equal(inodes.insert(made(2 ** 32 + 9, "plain")), false);
    // Written again within the group, by an insert that finds the row.
    content.putInline(2 ** 32 + 3, Buffer.from("second"));
    inodes.rename(2 ** 32 + 4, { parentId: DIRECTORY, name: "renamed", ctimeMs: 7, version: 2 });
  });
  assert.deepEqual(
    sent.map(({ table, fresh }) => [table, fresh?.length]),
    [
      ["inode", 3],
      ["inline_content", 3],
    ],
  );
  const plain = (rows: readonly object[]): object[] =>
    rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          value instanceof Uint8Array ? Buffer.from(value).toString("hex") : (value as unknown),
        ]),
      ),
    );
  // Rows that SQLite gives have no prototype, and bytes of their own.
  const madeHere = sent.map(({ fresh = [] }) => fresh.map((row) => Object.getPrototypeOf(row) !== null));
  assert.deepEqual(madeHere, [
    [true, true, false],
    [true, true, true],
  ]);
  const [firstContent] = (sent[1]?.fresh ?? []) as { data: unknown }[];
  assert.equal(firstContent?.data, first);
  for (const [at, { fresh = [] }] of sent.entries()) {
    assert.deepEqual(plain(fresh), plain(read[at] as object[]));
  }
});

test("an insert of another form is refused where it is prepared", () => {
  const db = new DatabaseSync(":memory:");
  migrate(db, "");
  const prepare = (sql: string) => db.prepare(sql);
  const { table, rowOf } = madeRow("INSERT INTO staging (root_number, content_id) VALUES (?, -7)", prepare);
  assert.deepEqual([table, rowOf([3])], ["staging", { content_id: -7, root_number: 3 }]);
  for (const sql of [
    "INSERT INTO staging (content_id) SELECT ?",
    "INSERT INTO staging (content_id) VALUES (? + 1)",
    "INSERT INTO staging (content_id, root_number) VALUES (?)",
  ]) {
    assert.throws(() => madeRow(sql, prepare), /what a row becomes is not seen/, sql);
  }
  db.close();
});
