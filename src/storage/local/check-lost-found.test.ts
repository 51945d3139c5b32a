// Tests that a repair sets files aside also where the data folder is the root of a disk with a lost+found of its own.
import assert from "node:assert/strict";
import fs, { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { mock, test } from "node:test";
import { assertSound, copiesOf, OWNER } from "./store.fixture.ts";

// Made by mkfs, it belongs to root: who runs the node may not put anything there.
const { renameSync } = fs;
mock.method(fs, "renameSync", (from: string, to: string) => {
  if (to.includes("/lost+found/"))
    throw Object.assign(new Error("rename"), { code: "EACCES", syscall: "rename" });
  renameSync(from, to);
});
syncBuiltinESMExports();
const { checkStorage } = await import("#storage/check/check-storage.ts");

const filled = copiesOf(async (storage) => {
  await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
});

test("what belongs to nothing goes beside a lost+found that is another user's (A-11)", async (context) => {
  const directory = await filled(context);
  mkdirSync(join(directory, "lost+found"), { mode: 0o700 });
  const path = join(directory, "chunks", "ee", "ee".repeat(16));
  writeFileSync(path, "somebody's bytes");
  assert.equal(checkStorage(directory, { repair: true, deep: false }).repairedCount, 1);
  assert.equal(existsSync(path), false);
  assert.deepEqual(readdirSync(join(directory, "lost+found")), []);
  assert.deepEqual(readdirSync(join(directory, "lost+found-grove")), [`ee-${"ee".repeat(16)}`]);
  assertSound(directory);
});
