// Tests of the largest parts of CPU profiles.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { largestParts, spanOf } from "./profile.ts";

const frame = (id: number, functionName: string, url: string): object => ({
  id,
  callFrame: { functionName, url },
});

const ALWAYS = { fromUs: 0, toUs: Infinity };

function folderWithProfiles(): string {
  const folder = scratchFolder("profile-");
  const nodes = [frame(1, "(idle)", ""), frame(2, "look", "file:///src/look.ts"), frame(3, "", "node:http2")];
  const main = { nodes, startTime: 500, samples: [1, 2, 3, 2], timeDeltas: [1_000, 30, 10, 10] };
  const worker = { nodes: [frame(7, "(program)", "")], startTime: 2_000, samples: [7], timeDeltas: [50] };
  writeFileSync(join(folder, "a.cpuprofile"), JSON.stringify(main));
  writeFileSync(join(folder, "b.cpuprofile"), JSON.stringify(worker));
  return folder;
}

test("the largest parts are shares of all threads' time without waiting, the largest first", async () => {
  const folder = folderWithProfiles();
  const all = await largestParts(folder, 10, ALWAYS);
  assert.equal(all, "(program) 50.0 %, look (look.ts) 40.0 %, anonymous (node:http2) 10.0 %");
  assert.equal(await largestParts(folder, 1, ALWAYS), "(program) 50.0 %");
});

test("what was sampled before and after the span is left out", async () => {
  const parts = await largestParts(folderWithProfiles(), 10, { fromUs: 1_535, toUs: 1_600 });
  assert.equal(parts, "anonymous (node:http2) 50.0 %, look (look.ts) 50.0 %");
});

test("a folder without samples in the span is refused", async () => {
  await assert.rejects(largestParts(scratchFolder("profile-"), 10, ALWAYS), /no samples/);
  await assert.rejects(largestParts(folderWithProfiles(), 10, { fromUs: 3_000, toUs: 4_000 }), /no samples/);
});

test("a span is in the time of the profiles that Node makes", async () => {
  const session = new Session();
  session.connect();
  const { profile } = await new Promise<{ profile: { startTime: number; endTime: number } }>(
    (resolve, reject) => {
      session.post("Profiler.enable");
      session.post("Profiler.start");
      session.post("Profiler.stop", (error, result) => (error === null ? resolve(result) : reject(error)));
    },
  );
  const after = await spanOf(() => Promise.resolve());
  session.disconnect();
  assert.ok(profile.endTime <= after.fromUs);
  assert.ok(after.fromUs - profile.startTime < 60_000_000);
});
