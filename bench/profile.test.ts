// Tests of the largest parts of CPU profiles.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { largestParts } from "./profile.ts";

const frame = (id: number, functionName: string, url: string): object => ({
  id,
  callFrame: { functionName, url },
});

test("the largest parts are shares of all threads' time without waiting, the largest first", async () => {
  const folder = scratchFolder("profile-");
  const nodes = [frame(1, "(idle)", ""), frame(2, "look", "file:///src/look.ts"), frame(3, "", "node:http2")];
  const main = { nodes, samples: [1, 2, 3, 2], timeDeltas: [1_000, 30, 10, 10] };
  const worker = { nodes: [frame(7, "(program)", "")], samples: [7], timeDeltas: [50] };
  writeFileSync(join(folder, "a.cpuprofile"), JSON.stringify(main));
  writeFileSync(join(folder, "b.cpuprofile"), JSON.stringify(worker));
  const all = await largestParts(folder, 10);
  assert.equal(all, "(program) 50.0 %, look (look.ts) 40.0 %, anonymous (node:http2) 10.0 %");
  assert.equal(await largestParts(folder, 1), "(program) 50.0 %");
});

test("a folder without samples is refused", async () => {
  await assert.rejects(largestParts(scratchFolder("profile-"), 10), /no samples/);
});
