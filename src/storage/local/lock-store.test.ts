// Tests where locks lie: each directory above them is looked up once, and anew after a change.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { CountedLooks } from "#storage/metadata/counted-looks.fixture.ts";
import type { SnapshotTables } from "#storage/metadata/snapshot-reader.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { LocalLocks } from "./lock-store.ts";

const LEVELS = 100;
const FILES = 50;

test("many locks below the same directories look each of these up once, and anew after a commit", (t) => {
  const path = join(scratchFolder("lock-store-"), "rows.db");
  const writing = new DatabaseSync(path);
  const reading = new DatabaseSync(path, { returnArrays: true });
  t.after(() => {
    reading.close();
    writing.close();
  });
  writing.exec(`CREATE TABLE root (number, owner); CREATE TABLE lock (token, inode_id, username, credential, is_exclusive,
    is_deep, note, expires_at_ms, root_number); CREATE TABLE inode (id INTEGER PRIMARY KEY, parent_id, name)`);
  const add = writing.prepare("INSERT INTO inode VALUES (?, ?, ?)");
  add.run(1, null, "");
  for (let id = 2; id <= LEVELS; id++) add.run(id, id - 1, `d${id}`);
  for (let at = 1; at <= FILES; at++) add.run(LEVELS + at, LEVELS, `f${at}`);
  const looks = new CountedLooks(reading, "parent_id");
  const tables: SnapshotTables = { prepare: looks.prepare, read: (read) => read() };
  const locks = new LocalLocks({
    tables,
    queue: { submit: () => Promise.reject(new Error("nothing is changed here")) },
    nowMs: () => 0,
    root: () => undefined,
  });
  const directories = Array.from({ length: LEVELS - 1 }, (_, at) => `d${at + 2}`);
  for (let at = 1; at <= FILES; at++)
    assert.deepEqual(locks.namesBelow(LEVELS + at, 1), [...directories, `f${at}`]);
  assert.equal(looks.count, LEVELS - 1 + FILES);
  assert.equal(locks.namesBelow(LEVELS + 1, LEVELS + 2), undefined);
  assert.equal(locks.namesBelow(-1, 1), undefined);
  writing.exec("UPDATE inode SET name = 'renamed' WHERE id = 2");
  assert.deepEqual(locks.namesBelow(3, 1), ["renamed", "d3"]);
});
