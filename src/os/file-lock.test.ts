// Locks that end with their holder: a probe sees them, also after the file was removed.
import assert from "node:assert/strict";
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { holdAlone, holdShared, LockProbe } from "./file-lock.ts";

test("a lock is seen while anybody holds it, by one or by several, and no longer", (context) => {
  const path = join(scratchFolder("os-lock-"), "lock");
  const probe = new LockProbe(path);
  context.after(() => probe.close());
  assert.equal(probe.isHeld(), false);
  const [first, second] = [holdShared(path), holdShared(path)];
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(probe.isHeld(), true);
  assert.throws(() => holdAlone(path, "it is in use"), { code: "DATA_IN_USE", message: "it is in use" });
  first();
  assert.equal(probe.isHeld(), true);
  second();
  assert.equal(probe.isHeld(), false);
  const alone = holdAlone(path, "it is in use");
  assert.throws(() => holdAlone(path, "it is in use"), { code: "DATA_IN_USE" });
  assert.equal(probe.isHeld(), true);
  alone();
  assert.equal(probe.isHeld(), false);
});

test("a lock file that was removed and made again is looked at anew", (context) => {
  const path = join(scratchFolder("os-lock-"), "lock");
  const probe = new LockProbe(path);
  context.after(() => probe.close());
  holdShared(path)();
  assert.equal(probe.isHeld(), false);
  rmSync(path);
  const release = holdShared(path);
  assert.equal(probe.isHeld(), true);
  release();
  assert.equal(probe.isHeld(), false);
});
