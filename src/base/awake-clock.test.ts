// A standstill of the process counts as two looks, and judgements of others wait for unread messages.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AwakeClock } from "./awake-clock.ts";
import { ManualClock } from "./clock.ts";

const ignore = (): void => undefined;

test("while it is looked at in time it goes like the steady clock", () => {
  const clock = new ManualClock();
  const awake = new AwakeClock(clock, 1_000);
  clock.every(1_000, () => awake.look(ignore));
  for (let step = 0; step < 100; step++) {
    clock.advance(321);
    assert.equal(awake.steadyMs(), clock.steadyMs());
  }
});

test("two intervals without a look count whole, more than that count as two, and it goes on from there", () => {
  const clock = new ManualClock();
  const awake = new AwakeClock(clock, 1_000);
  const startMs = awake.steadyMs();
  clock.advance(2_000);
  awake.look(ignore);
  assert.equal(awake.steadyMs() - startMs, 2_000);
  clock.advance(3_600_000);
  assert.equal(awake.steadyMs() - startMs, 4_000);
  awake.look(ignore);
  assert.equal(awake.steadyMs() - startMs, 4_000);
  clock.advance(500);
  assert.equal(awake.steadyMs() - startMs, 4_500);
});

test("of a standstill two intervals count, whenever in between it begins", () => {
  for (const beforeMs of [0, 1, 500, 999]) {
    const clock = new ManualClock();
    const awake = new AwakeClock(clock, 1_000);
    clock.every(1_000, () => awake.look(ignore));
    clock.advance(5_000 + beforeMs);
    clock.standStill(60_000);
    assert.equal(awake.steadyMs(), 1_000 + 7_000);
  }
});

test("others are judged at once, but after a standstill only when an immediate comes", async () => {
  const clock = new ManualClock();
  const awake = new AwakeClock(clock, 1_000);
  const judged: string[] = [];
  clock.advance(2_000);
  awake.look(() => judged.push("in time"));
  assert.deepEqual(judged, ["in time"]);
  clock.advance(2_001);
  awake.look(() => judged.push("late"));
  assert.deepEqual(judged, ["in time"]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(judged, ["in time", "late"]);
});
