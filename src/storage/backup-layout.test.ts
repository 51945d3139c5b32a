// What a backup is called, where its chunks lie, and which files it takes.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BACKUP_SCHEMA,
  isBackupId,
  isTakenFile,
  isTakenFolder,
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

test("a backup takes settings and the audit log, and certificates with who signs them only when it is asked to", () => {
  for (const name of ["quota_config.json", "quota_config.json.previous", "cluster_id"]) {
    assert.deepEqual([isTakenFile(name, false), isTakenFile(name, true)], [true, true], name);
  }
  for (const name of [".secret.json", "grove.db", "backup.lock", "cluster_id.tmp", "lock"]) {
    assert.deepEqual([isTakenFile(name, false), isTakenFile(name, true)], [false, false], name);
  }
  assert.deepEqual([isTakenFile("node.json", false), isTakenFile("node.json", true)], [false, true]);
  assert.deepEqual([isTakenFolder("audit", false), isTakenFolder("audit", true)], [true, true]);
  assert.deepEqual([isTakenFolder("tls", false), isTakenFolder("tls", true)], [false, true]);
  assert.deepEqual([isTakenFolder("chunks", false), isTakenFolder("chunks", true)], [false, false]);
});
