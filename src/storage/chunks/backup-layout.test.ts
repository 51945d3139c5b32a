// Tests of a backup's name, the place of its chunks and the files that it takes.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BACKUP_SCHEMA,
  isBackupId,
  isTakenFile,
  isTakenFolder,
  isTakenInside,
  nextBackupId,
  poolPath,
} from "./backup-layout.ts";

const NOW_MS = Date.UTC(2026, 10, 3, 4, 5, 6, 789);

test("ids follow each other whatever the clock says, and are told from other names", () => {
  const first = nextBackupId([], NOW_MS);
  assert.equal(first, "000001-20261103T040506Z");
  assert.equal(isBackupId(first), true);
  assert.equal(nextBackupId([".half", "lost+found"], NOW_MS), first, "what is no backup is not counted");
  assert.equal(nextBackupId(["000009-20300101T000000Z", first, ".half"], NOW_MS), "000010-20261103T040506Z");
  for (const other of ["000001", `.${first}`, `${first}.tmp`, "1-20261103T040506Z"]) {
    assert.equal(isBackupId(other), false, other);
  }
});

test("folders of backups that exist say that their form is 1, and stay readable", () => {
  assert.equal(BACKUP_SCHEMA, 1);
});

test("a chunk of the pool lies in the directory that its name begins with", () => {
  assert.equal(poolPath("/b", "a7".repeat(16)), `/b/chunks/a7/${"a7".repeat(16)}`);
});

test("a backup takes settings, the audit log, what the node was and its certificate, and private keys only when it is asked to", () => {
  for (const name of [
    "quota_config.json",
    "quota_config.json.previous",
    "cluster_id",
    "node.json",
    "served_as.json",
  ]) {
    assert.equal(isTakenFile(name), true, name);
  }
  for (const name of [
    ".secret.json",
    "grove.db",
    "backup.lock",
    "cluster_id.tmp",
    "lock",
    "last_process",
    "ballast",
    "slack",
  ]) {
    assert.equal(isTakenFile(name), false, name);
  }
  assert.deepEqual(["audit", "tls", "chunks"].map(isTakenFolder), [true, true, false]);
  const inside = (folder: string, name: string): boolean[] =>
    [false, true].map((keys) => isTakenInside(folder, name, keys));
  for (const name of ["node.crt", "ca.crt"]) assert.deepEqual(inside("tls", name), [true, true], name);
  for (const name of ["node.key", "node.key.old", "key.pem", "node.crt.key"]) {
    assert.deepEqual(inside("tls", name), [false, true], name);
  }
  assert.deepEqual(inside("tls", ".node.crt.0123456789abcdef.tmp"), [false, false]);
  assert.deepEqual(inside("audit", "0000000000000001.log"), [true, true]);
});
