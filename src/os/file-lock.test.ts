// Locks that end with their holder: a probe sees them, also after the file was removed.
import assert from "node:assert/strict";
import { chownSync, linkSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { changeAlone, holdAlone, holdShared, LockProbe, makeLockFile } from "./file-lock.ts";

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

test("changes under one lock take turns, and one that waits in vain is refused with what to do", async () => {
  const path = join(scratchFolder("os-lock-"), "lock");
  let value = 0;
  const change = async (): Promise<void> => {
    const before = value;
    await setImmediate();
    value = before + 1;
  };
  await Promise.all([1, 2, 3].map(() => changeAlone(path, "it is in use", change)));
  assert.equal(value, 3);
  await assert.rejects(
    changeAlone(path, "it is in use", () => Promise.reject(new Error("its own"))),
    /its own/,
  );
  const release = holdShared(path);
  await assert.rejects(changeAlone(path, "it is in use", change, 0), { code: "DATA_IN_USE" });
  release();
  await changeAlone(path, "it is in use", change, 0);
  assert.equal(value, 4);
});

test("a lock file that root makes in a service's folder is the service's", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async () => {
  const folder = scratchFolder("os-lock-");
  chownSync(folder, 64_242, 64_243);
  const path = join(folder, "lock");
  await changeAlone(path, "it is in use", () => Promise.resolve());
  const { uid, gid } = statSync(path);
  assert.deepEqual([uid, gid], [64_242, 64_243]);
});

test("a lock that root has made and left to itself is the service's from the next time on, and nothing else is", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, () => {
  const folder = scratchFolder("os-lock-");
  const ownerOf = (name: string): number => statSync(join(folder, name)).uid;
  for (const name of ["made", "content"]) writeFileSync(join(folder, name), name === "made" ? "" : "x");
  writeFileSync(join(folder, "linked"), "");
  linkSync(join(folder, "linked"), join(folder, "link"));
  symlinkSync("content", join(folder, "symbolic"));
  chownSync(folder, 64_242, 64_243);
  for (const name of ["made", "content", "link", "new"]) makeLockFile(join(folder, name));
  assert.throws(() => makeLockFile(join(folder, "symbolic")));
  assert.deepEqual(["made", "new", "content", "link"].map(ownerOf), [64_242, 64_242, 0, 0]);
  holdShared(join(folder, "shared"))();
  assert.equal(ownerOf("shared"), 64_242);
});
