// Runs the short form of a rig in `npm test`: seconds long, a new seed each time, named when it fails.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Campaign } from "./campaign.ts";
import type { Rig } from "./rig.ts";

/**
 * Bounds of a run that hangs, by which nothing is judged: a form of ten seconds takes two minutes on a
 * machine of a quarter of the speed with other programs beside it.
 */
const SHORT_FORM_MS = 240_000;
const LIMIT_MS = 300_000;
const SEEDS = 2 ** 31;

/** Declares the test of this rig's short form. GROVE_PROVE_SEED repeats an attack. */
export function testShortForm(rig: Rig): void {
  const lacking = rig.lacks?.();
  const settings = { timeout: LIMIT_MS, ...(lacking === undefined ? {} : { skip: lacking }) };
  test(`${rig.proves} (${rig.figure}, short form)`, settings, async () => {
    const seed = Number(process.env["GROVE_PROVE_SEED"] ?? Math.floor(Math.random() * SEEDS));
    const result = await Campaign.run(rig, { seed, goal: rig.shortGoal, timeMs: SHORT_FORM_MS });
    const again = `again with: npm run prove -- ${rig.name} --short --seed ${seed}`;
    assert.deepEqual(result.violations, [], again);
    assert.ok(result.reached, `${JSON.stringify(result.counts)} instead of ${rig.shortGoal}; ${again}`);
  });
}
