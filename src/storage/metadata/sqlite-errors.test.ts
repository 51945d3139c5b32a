// Tests of which errors end all writing and which refuse one change, by codes of SQLite and the filesystem.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import {
  harmlessFileError,
  isBrokenDatabase,
  isDatabaseBusy,
  isDatabaseFull,
  packError,
  sqliteCode,
} from "./sqlite-errors.ts";

const sqlite = (errcode: unknown): Error => Object.assign(new Error("sqlite"), { errcode });
const file = (code: unknown): Error => Object.assign(new Error("file"), { code });

test("an extended code of SQLite counts as its primary one, and what has none is no error of SQLite", () => {
  assert.equal(sqliteCode(sqlite(2_570)), 10);
  for (const other of [sqlite("10"), new Error("plain"), "text", undefined, file("EIO")]) {
    assert.equal(sqliteCode(other), undefined);
    assert.equal(isBrokenDatabase(other), false);
  }
  const db = new DatabaseSync(":memory:");
  db.exec("CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT; INSERT INTO t VALUES (1)");
  assert.throws(
    () => db.exec("INSERT INTO t VALUES (1)"),
    (error) => sqliteCode(error) === 19 && !isBrokenDatabase(error),
  );
  db.close();
});

test("busy, locked, no memory, full, too big and constraints leave the store as it was; all else has broken it (A-06)", () => {
  const harmless = [5, 6, 7, 13, 18, 19];
  for (let code = 1; code < 29; code++) {
    const error = sqlite(code + 256);
    assert.equal(isBrokenDatabase(error), !harmless.includes(code), String(code));
    assert.equal(packError(error), harmless.includes(code) ? undefined : "Error: sqlite");
    assert.equal(isDatabaseFull(error), code === 13);
    assert.equal(isDatabaseBusy(error), code === 5 || code === 6);
  }
});

test("a full disk and too few descriptors refuse one change; any other error of a file is not harmless (A-07)", () => {
  for (const [code, refused] of [
    ["ENOSPC", "DISK_RESERVE"],
    ["EDQUOT", "DISK_RESERVE"],
    ["EMFILE", "OVERLOADED"],
    ["ENFILE", "OVERLOADED"],
    ["EIO", undefined],
    [5, undefined],
  ] as const) {
    assert.equal(harmlessFileError(file(code))?.code, refused, String(code));
  }
  assert.equal(harmlessFileError(new Error("plain")), undefined);
  assert.equal(harmlessFileError("ENOSPC"), undefined);
});
