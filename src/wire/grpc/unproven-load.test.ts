// The account of wasted work by unproven callers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { UNPROVEN_LOAD_OF_ALL, UNPROVEN_LOAD_OF_NETWORK } from "#wire/framing/limits.ts";
import { UnprovenLoad } from "./unproven-load.ts";

test("a network may cause so much at once, and is let in again as its account fills", () => {
  const clock = new ManualClock();
  const load = new UnprovenLoad(clock);
  const { burst, perSecond } = UNPROVEN_LOAD_OF_NETWORK;
  assert.equal(load.charge("a", burst - 1), true);
  assert.equal(load.charge("a", 1), false);
  assert.equal(load.charge("b", 1), true);
  clock.advance(1_000);
  assert.equal(load.isOver("a"), false);
  assert.equal(load.charge("a", perSecond), false);
});

test("while all together are over their budget, a network may have used half of its own", () => {
  const clock = new ManualClock();
  const load = new UnprovenLoad(clock);
  const { burst } = UNPROVEN_LOAD_OF_NETWORK;
  load.charge("modest", burst / 4);
  load.charge("greedy", burst / 2);
  assert.equal(load.isOver("greedy"), false);
  for (let at = 0; at < UNPROVEN_LOAD_OF_ALL.burst / burst; at++) load.charge(`crowd-${at}`, burst);
  assert.equal(load.isOver("greedy"), true);
  assert.equal(load.isOver("modest"), false);
});
