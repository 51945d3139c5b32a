// Setting a damaged file aside: its name, its content, and the log line.
import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { setAside } from "./set-aside.ts";

test("a file that is set aside keeps its content under a name with the time in seconds, and the log says where (A-10)", async () => {
  const folder = scratchFolder("grove-aside-");
  const path = join(folder, "kept.json");
  await writeFile(path, "{damaged");
  const logged: unknown[] = [];
  const log = { ...silentLogger, error: (event: string, fields?: object) => logged.push([event, fields]) };
  const as = await setAside(path, { clock: new ManualClock(1_790_000_000_999), log });
  assert.equal(as, `${path}.corrupt-1790000000`);
  assert.deepEqual(await readdir(folder), ["kept.json.corrupt-1790000000"]);
  assert.equal(await readFile(as, "utf8"), "{damaged");
  assert.deepEqual(logged, [["file_set_aside", { file: path, as }]]);
});
