// Tests that every change of a shared table is noted by its key, and that undone ones are forgotten.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { migrate } from "#storage/metadata/schema.ts";
import { ChangedKeys } from "./changed-keys.ts";
import { SHARED_TABLES, type SharedTable } from "./shared-tables.ts";
import { keyColumns, tableStatements } from "./table-rows.ts";

function opened(t: TestContext): { db: DatabaseSync; changes: ChangedKeys } {
  const db = new DatabaseSync(":memory:", { enableForeignKeyConstraints: false });
  t.after(() => db.close());
  migrate(db, "");
  // Rows are made up: a detached thing is either an inode or a list.
  db.exec("PRAGMA ignore_check_constraints = ON");
  return { db, changes: new ChangedKeys(db, SHARED_TABLES) };
}

function rowOf({ columns }: SharedTable): (number | string | Uint8Array)[] {
  return columns.map(({ type }, at) =>
    type === "BIGINT" ? at + 1 : type === "TEXT" ? `${at}` : Buffer.of(at),
  );
}

function insert(db: DatabaseSync, table: SharedTable): void {
  const names = table.columns.map(({ name }) => name);
  db.prepare(
    `INSERT INTO ${table.name} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
  ).run(...rowOf(table));
}

function keyOf(table: SharedTable): unknown[] {
  const keys = keyColumns(table);
  return rowOf(table).filter((_, at) => keys.includes(table.columns[at]?.name ?? ""));
}

test("rows of every shared table are noted when they come, change and go, and at no other time", (t) => {
  const { db, changes } = opened(t);
  for (const table of SHARED_TABLES) {
    const { name, columns } = table;
    const key = keyOf(table);
    changes.during(() => insert(db, table));
    assert.deepEqual(changes.all(), [{ table: name, key, isMade: true }], name);
    const others = columns.filter((column) => !keyColumns(table).includes(column.name));
    for (const { name: column } of others) {
      changes.during(() => db.exec(`UPDATE ${name} SET ${column} = ${column}`));
      assert.deepEqual(changes.all(), [{ table: name, key, isMade: false }], `${name}.${column}`);
    }
    changes.during(() => db.exec(`DELETE FROM ${name}`));
    assert.deepEqual(changes.all(), [{ table: name, key, isMade: false }], name);
    changes.during(() => undefined);
    insert(db, table);
    db.exec(changes.unnoted(`DELETE FROM ${name};`));
    assert.deepEqual(changes.all(), [], name);
  }
});

test("a row under another key is a new one, one that was there first stays known as such", (t) => {
  const { db, changes } = opened(t);
  db.exec("INSERT INTO inline_content (inode_id, data) VALUES (1, x'00')");
  changes.during(() => {
    db.exec("UPDATE inline_content SET inode_id = 2");
    db.exec("DELETE FROM inline_content");
    db.exec("INSERT INTO inline_content (inode_id, data) VALUES (1, x'01')");
    changes.touch("inline_content", 3);
    db.exec("INSERT INTO inline_content (inode_id, data) VALUES (3, x'01')");
  });
  assert.deepEqual(
    changes.all().map(({ key, isMade }) => [...key, isMade]),
    [
      [1, false],
      [2, true],
      [3, false],
    ],
  );
});

test("rows that an undone command has touched alone are forgotten, those of commands before it are not", (t) => {
  const { db, changes } = opened(t);
  changes.during(() => {
    db.exec("INSERT INTO copying (inode_id) VALUES (1)");
    const before = changes.count;
    db.exec("SAVEPOINT s; DELETE FROM copying; INSERT INTO copying (inode_id) VALUES (2); ROLLBACK TO s");
    changes.undoTo(before);
  });
  assert.deepEqual(changes.all(), [{ table: "copying", key: [1], isMade: true }]);
  changes.during(() => db.exec("INSERT INTO copying (inode_id) VALUES (2)"));
  assert.deepEqual(changes.all(), [{ table: "copying", key: [2], isMade: true }]);
});

test("a row that was kept as its insert has made it is not read back, until it changes or a command is undone", (t) => {
  const { db, changes } = opened(t);
  const table = SHARED_TABLES.find(({ name }) => name === "inline_content") as SharedTable;
  const statements = tableStatements(table, (sql) => db.prepare(sql));
  const dataOf = (): string[] =>
    changes
      .effects(
        () => statements,
        () => true,
      )
      .flatMap(({ fresh = [] }) => fresh.map((row) => (row as { data: Buffer }).data))
      .map((data) => Buffer.from(data).toString());
  const make = (id: number): void => {
    db.exec(`INSERT INTO inline_content (inode_id, data) VALUES (${id}, CAST('read' AS BLOB))`);
    changes.keep("inline_content", id, { inode_id: id, data: Buffer.from("kept") });
  };
  changes.during(() => make(1));
  assert.deepEqual(dataOf(), ["kept"]);
  assert.deepEqual(dataOf(), ["read"], "one group alone has it");
  changes.during(() => {
    make(2);
    make(3);
    db.exec("UPDATE inline_content SET data = CAST('later' AS BLOB) WHERE inode_id = 2");
  });
  assert.deepEqual(dataOf(), ["later", "kept"]);
  changes.during(() => {
    make(4);
    const before = changes.count;
    db.exec("SAVEPOINT s; DELETE FROM inline_content WHERE inode_id = 4");
    make(4);
    db.exec("ROLLBACK TO s; RELEASE s");
    changes.undoTo(before);
  });
  assert.deepEqual(dataOf(), ["read"], "what was kept last is undone");
  changes.keep("inline_content", 4, { inode_id: 4, data: Buffer.from("kept") });
  changes.during(() => db.exec("UPDATE inline_content SET inode_id = 5 WHERE inode_id = 4"));
  assert.deepEqual(dataOf(), ["read"], "between groups nothing is kept");
});
