// The manual clock that other tests rely on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bootClock, ManualClock } from "./clock.ts";
import { systemRandom } from "./random.ts";
import { ulid } from "./ulid.ts";

test("timers fire in order of their time, repeating ones again, cancelled ones never", () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  clock.after(30, () => seen.push("after"));
  const stop = clock.every(20, () => seen.push("every"));
  clock.after(10, () => seen.push("gone"))();
  clock.advance(45);
  stop();
  clock.advance(100);
  assert.deepEqual(seen, ["every", "after", "every"]);
});

test("wall time goes on by exactly as much as it is moved, however broken the times of timers are", () => {
  const clock = new ManualClock();
  const before = clock.wallMs();
  clock.every(0.1, () => undefined);
  for (let second = 1; second <= 3; second++) {
    clock.advance(1_000);
    assert.equal(clock.wallMs(), before + second * 1_000);
  }
});

test("a jump of the wall leaves the steady clock alone", () => {
  const clock = new ManualClock();
  const steadyMs = clock.steadyMs();
  clock.jumpWall(-3_600_000);
  assert.equal(clock.steadyMs(), steadyMs);
});

test("boot time is read seldom while the machine is awake, and at once after a sleep", () => {
  const clock = new ManualClock();
  let reads = 0;
  const bootMs = bootClock(() => {
    reads++;
    return clock.bootMs();
  }, clock);
  for (let call = 0; call < 90; call++) {
    clock.advance(1);
    assert.equal(bootMs(), clock.bootMs());
  }
  assert.equal(reads, 1);
  for (const asleepMs of [20, 10_000]) {
    clock.sleep(asleepMs);
    assert.equal(bootMs(), clock.bootMs());
  }
  assert.equal(reads, 3);
  // A sleep that the wall clock hides is seen a tenth of a second later.
  clock.sleep(5_000);
  clock.jumpWall(-5_000);
  clock.advance(100);
  assert.equal(bootMs(), clock.bootMs());
});

test("a ULID has 26 characters and sorts by time", () => {
  const clock = new ManualClock();
  const first = ulid(clock, systemRandom);
  clock.advance(1);
  const second = ulid(clock, systemRandom);
  assert.match(first, /^[0-9A-HJKMNP-TV-Z]{26}$/);
  assert.ok(first < second);
});
