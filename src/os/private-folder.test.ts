// Private folders: access for their owner alone, and an error instead of an endless loop.
import assert from "node:assert/strict";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { makePrivateFolder } from "./private-folder.ts";

test("a folder is made with what is missing above it, for its owner alone", () => {
  const folder = scratchFolder("private-folder-");
  const path = join(folder, "a", "b", "c");
  assert.equal(makePrivateFolder(path), join(folder, "a"));
  assert.equal(statSync(path).mode & 0o777, 0o700);
  assert.equal(makePrivateFolder(path), undefined);
  writeFileSync(join(folder, "file"), "");
  assert.throws(() => makePrivateFolder(join(folder, "file", "x")), { code: "EEXIST" });
  assert.throws(() => makePrivateFolder(join(folder, "file")), { code: "EEXIST" });
});

test("a file system that takes no new names refuses at once", { skip: !existsSync("/proc/self") }, () => {
  assert.throws(() => makePrivateFolder("/proc/grove-data/a"), { code: "ENOENT", path: "/proc/grove-data" });
});
