// Tests which locks end with what they lie below: each folder above them is looked up once.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { CountedLooks } from "./counted-looks.fixture.ts";
import { LockRows, mayBeLocked } from "./lock-rows.ts";
import type { Ledger, RootState } from "./unit-of-work.ts";

const LEVELS = 100;
const FILES = 50;
const ROOT = 7;
const ASIDE = 1_000;

test("many locks below the same folders look each of these up once, and end with each of them", (t) => {
  const db = new DatabaseSync(":memory:");
  t.after(() => db.close());
  db.exec(`CREATE TABLE lock (token, root_number, inode_id, username, credential, is_exclusive, is_deep, note, expires_at_ms);
    CREATE TABLE inode (id INTEGER PRIMARY KEY, parent_id)`);
  const add = db.prepare("INSERT INTO inode VALUES (?, ?)");
  add.run(1, null);
  add.run(ASIDE, 1);
  for (let id = 2; id <= LEVELS; id++) add.run(id, id - 1);
  for (let at = 1; at <= FILES; at++) add.run(LEVELS + at, LEVELS);
  const looks = new CountedLooks(db, "parent_id");
  const ledger = { touchRoot: () => undefined } as unknown as Ledger;
  const rows = new LockRows({ prepare: looks.prepare } as DatabaseSync, ledger);
  const root = { number: ROOT, lockCount: 0, lockVersion: 0, latestLocks: [] } as unknown as RootState;
  const about = { credential: "", isExclusive: 0, isDeep: 0, note: "", expiresAtMs: 1 } as const;
  for (let at = 1; at <= FILES; at++)
    rows.add(root, { token: `t${at}`, inodeId: LEVELS + at, username: `u${at % 2}`, ...about }, `/f${at}`);
  assert.equal(mayBeLocked(root, FILES - 2, ["/f1"]), false);
  assert.equal(mayBeLocked(root, FILES - 2, ["/f1", `/f${FILES - 1}`]), true);

  rows.dropBelow(root, ASIDE);
  assert.equal(root.lockCount, FILES);
  assert.equal(looks.count, LEVELS + FILES);
  rows.dropBelow(root, LEVELS + 1);
  assert.equal(root.lockCount, FILES - 1);
  rows.dropBelow(root, LEVELS / 2);
  assert.equal(root.lockCount, 0);
});

test("a change meets the locks taken since its check where they lie at, above or below it, and those not known", () => {
  const latestLocks = [
    { version: 8, path: "/a/b" },
    { version: 9, path: "/c" },
  ];
  const root = { lockVersion: 9, latestLocks };
  for (const path of ["/a/b", "/a", "/", "/a/b/d", "/c"])
    assert.equal(mayBeLocked(root, 7, [path]), true, path);
  for (const path of ["/a/bb", "/a/e", "/d"]) assert.equal(mayBeLocked(root, 7, [path]), false, path);
  assert.equal(mayBeLocked(root, 8, ["/a/b"]), false, "its check has seen that one");
  assert.equal(mayBeLocked(root, 6, ["/d"]), true, "one that is not known");
  assert.equal(mayBeLocked({ lockVersion: 5, latestLocks }, 9, ["/d"]), true);
});
