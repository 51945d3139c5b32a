// Tests the folder in memory of a test run.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { memoryFolder } from "./test-memory.ts";

test("the folder is empty, others may enter it, and what killed runs have left goes", async () => {
  // Any folder will do.
  const memory = scratchFolder("grove-memory-");
  const ended = spawnSync("true").pid;
  const left = join(memory, `grove-tests-${ended}-abcdef`);
  const alive = join(memory, `grove-tests-${process.ppid}-abcdef`);
  for (const folder of [left, alive, join(memory, "other")])
    mkdirSync(join(folder, "inside"), { recursive: true });
  const folder = await memoryFolder(memory);
  // A machine with little room has none.
  if (folder === undefined) return;
  assert.equal(dirname(folder), memory);
  assert.equal(statSync(folder).mode & 0o777, 0o755);
  assert.deepEqual(
    [left, alive, join(memory, "other")].map((path) => existsSync(path)),
    [false, true, true],
  );
  rmSync(folder, { recursive: true });
});

test("without such a folder on the machine there is none", async () => {
  assert.equal(await memoryFolder("/there/is/none"), undefined);
});
