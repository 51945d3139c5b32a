// Tests that a run stops at its bounds, repeats by its seed, cleans up, and reports a broken promise as such.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { type Attack, Campaign } from "./campaign.ts";

const rig = (run: Attack["run"]): Attack => ({
  name: "sample",
  figure: "F0",
  unit: "draws",
  run,
});
const OPTIONS = { seed: 7, goal: 10, timeMs: 60_000 };

test("the same seed gives the same attack, another seed another one", async () => {
  const draws = async (seed: number): Promise<number[]> => {
    const drawn: number[] = [];
    const sample = rig(async (campaign) => {
      for (; campaign.shouldGoOn(); campaign.step()) drawn.push(campaign.random.below(1_000_000));
    });
    await Campaign.run(sample, { ...OPTIONS, seed });
    return drawn;
  };
  const first = await draws(7);
  assert.equal(first.length, 10);
  assert.deepEqual(await draws(7), first);
  assert.notDeepEqual(await draws(8), first);
});

test("a run without a violation that made all its attacks has reached its goal; one that made fewer has not", async () => {
  const full = rig(async (campaign) => campaign.step(10));
  assert.equal((await Campaign.run(full, OPTIONS)).reached, true);
  const lazy = rig(async (campaign) => campaign.step(9));
  assert.equal((await Campaign.run(lazy, OPTIONS)).reached, false);
  const partial = rig(async (campaign) => {
    campaign.step(10);
    campaign.leaveOut("kinds not met", 1);
  });
  assert.equal((await Campaign.run(partial, OPTIONS)).reached, false);
});

test("one violation is enough to miss the goal, and twenty end the run", async () => {
  const one = rig(async (campaign) => {
    campaign.step(10);
    campaign.violation("a byte was lost");
  });
  const result = await Campaign.run(one, OPTIONS);
  assert.deepEqual([result.reached, result.violations], [false, ["a byte was lost"]]);
  const many = rig(async (campaign) => {
    for (; campaign.shouldGoOn(); campaign.step()) campaign.violation("again");
  });
  assert.equal((await Campaign.run(many, { ...OPTIONS, goal: 1_000 })).violationCount, 20);
});

test("no attack is begun once the time is up", async () => {
  const sample = rig(async (campaign) => {
    for (; campaign.shouldGoOn(); campaign.step());
  });
  const result = await Campaign.run(sample, { ...OPTIONS, timeMs: -1 });
  assert.deepEqual([result.counts["draws"], result.reached], [0, false]);
});

test("what a run made goes when it ends, also by an error", async () => {
  let folder = "";
  const sample = rig(async (campaign) => {
    folder = await campaign.folder();
    assert.ok(existsSync(folder));
    throw new Error("the rig is broken");
  });
  await assert.rejects(Campaign.run(sample, OPTIONS), /the rig is broken/);
  assert.ok(!existsSync(folder));
});

test("an end that fails keeps no other from being made, and is told", async () => {
  const made: string[] = [];
  const sample = rig(async (campaign) => {
    campaign.atEnd(() => made.push("first"));
    campaign.atEnd(() => Promise.reject(new Error("it will not go")));
    campaign.atEnd(() => made.push("last"));
  });
  await assert.rejects(Campaign.run(sample, OPTIONS), /could not clean up/);
  assert.deepEqual(made, ["last", "first"]);
});

test("an interruption ends what was made, and is no result", async () => {
  const interrupted = Promise.withResolvers<never>();
  const made: string[] = [];
  const sample = rig((campaign) => {
    campaign.atEnd(() => made.push("ended"));
    interrupted.reject(new Error("interrupted"));
    return new Promise(() => undefined);
  });
  await assert.rejects(Campaign.run(sample, { ...OPTIONS, interrupted: interrupted.promise }), /interrupted/);
  assert.deepEqual(made, ["ended"]);
});

test("what was seen before the rig fails is told with the failure; a failure alone is thrown", async () => {
  const spoilt = rig(async (campaign) => {
    campaign.violation("the server ended");
    throw new Error("nobody answers");
  });
  const { violations } = await Campaign.run(spoilt, OPTIONS);
  assert.equal(violations[0], "the server ended");
  assert.match(violations[1] ?? "", /nobody answers/);
  const broken = rig(async () => Promise.reject(new Error("nobody answers")));
  await assert.rejects(Campaign.run(broken, OPTIONS), /nobody answers/);
});
