// Tests of the age clock: it follows the system's own count of sleep, and never the wall clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, ManualClock } from "#base/clock.ts";
import { AgeClock } from "./age-clock.ts";

test("ages follow the steady clock, whatever the wall does (C-01)", () => {
  const clock = new ManualClock();
  const ages = new AgeClock(clock);
  const startMs = ages.nowMs();
  assert.equal(startMs, clock.steadyMs());
  clock.advance(250);
  assert.equal(ages.nowMs() - startMs, 250);
  clock.jumpWall(3_600_000);
  assert.equal(ages.nowMs() - startMs, 250);
  clock.jumpWall(-7_200_000);
  clock.advance(1_000);
  assert.equal(ages.nowMs() - startMs, 1_250);
});

test("a machine that had slept before the start is not older for it (C-01)", () => {
  const clock = new ManualClock();
  clock.sleep(50_000);
  const ages = new AgeClock(clock);
  assert.equal(ages.nowMs(), clock.steadyMs());
  clock.advance(1_000);
  assert.equal(ages.nowMs(), clock.steadyMs());
});

test("sleeps add up from a second on; less is the coarseness of the system's count (C-01)", () => {
  const clock = new ManualClock();
  const ages = new AgeClock(clock);
  clock.sleep(999);
  assert.equal(ages.nowMs(), clock.steadyMs());
  clock.sleep(1);
  clock.advance(1_000);
  assert.equal(ages.nowMs(), clock.steadyMs() + 1_000);
  clock.sleep(999);
  assert.equal(ages.nowMs(), clock.steadyMs() + 1_000);
  clock.sleep(1);
  clock.advance(1_000);
  assert.equal(ages.nowMs(), clock.steadyMs() + 2_000);
});

test("a sleep right after the start is in the first age that is asked for (C-01)", () => {
  const clock = new ManualClock();
  const ages = new AgeClock(clock);
  clock.sleep(5_000);
  assert.equal(ages.nowMs(), clock.steadyMs() + 5_000);
});

/** The number of look-ups of the system's count, and its value. */
function counted(): { clock: ManualClock; asked: () => number; ages: AgeClock } {
  const clock = new ManualClock();
  let asked = 0;
  const watched: Clock = {
    wallMs: () => clock.wallMs(),
    steadyMs: () => clock.steadyMs(),
    bootMs: () => {
      asked++;
      return clock.bootMs();
    },
    after: () => () => undefined,
    every: () => () => undefined,
  };
  const ages = new AgeClock(watched);
  asked = 0;
  return { clock, ages, asked: () => asked };
}

test("the system is asked once a second, and at once when the wall steps by half a second either way", () => {
  const { clock, ages, asked } = counted();
  clock.advance(999);
  ages.nowMs();
  assert.equal(asked(), 0);
  clock.advance(1);
  ages.nowMs();
  ages.nowMs();
  assert.equal(asked(), 1);
  clock.jumpWall(499);
  ages.nowMs();
  assert.equal(asked(), 1);
  clock.jumpWall(1);
  ages.nowMs();
  ages.nowMs();
  assert.equal(asked(), 2);
  clock.jumpWall(-500);
  ages.nowMs();
  assert.equal(asked(), 3);
  clock.advance(999);
  ages.nowMs();
  assert.equal(asked(), 3);
  clock.advance(1);
  ages.nowMs();
  assert.equal(asked(), 4);
});

test("where nobody knows how long the machine slept, ages are those of the steady clock", () => {
  const clock = new ManualClock();
  const without: Clock = {
    wallMs: () => clock.wallMs(),
    steadyMs: () => clock.steadyMs(),
    after: () => () => undefined,
    every: () => () => undefined,
  };
  const ages = new AgeClock(without);
  clock.sleep(60_000);
  clock.advance(5_000);
  assert.equal(ages.nowMs(), clock.steadyMs());
});
