// Tests that a run in several processes is one run: one goal, one count, and one end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { anonymous } from "./anonymous/rig.ts";
import { Campaign } from "./campaign.ts";
import { inLanes } from "./lanes.ts";

test("lanes count into one run, have different seeds, and end when its goal is reached", async () => {
  const result = await Campaign.run(inLanes(anonymous), { seed: 1, goal: 4, timeMs: 60_000 });
  assert.deepEqual(result.violations, []);
  assert.ok(result.reached, JSON.stringify(result));
  const { "pairs of states": pairs = 0, "answers compared": answers = 0 } = result.counts;
  assert.ok(pairs >= 4 && answers >= pairs, JSON.stringify(result));
});

test("a rig whose own work is not one thread's runs as it is", () => {
  const { lanes: _, ...single } = anonymous;
  assert.equal(inLanes(single), single);
});
