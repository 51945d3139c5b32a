// Tests that the floors of memory tell growth from going up and down.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GROWTH_MAX_MB, MemoryFloors, warmFromOf } from "./memory-floors.ts";

function growthOf(memoryMb: (done: number) => number, goal = 1_000, warmFrom = 100): number {
  const floors = new MemoryFloors(goal, warmFrom);
  for (let done = 0; done <= goal; done++) floors.note(done, "server", memoryMb(done));
  return Math.round(floors.growthMb("server"));
}

test("what goes up and down without end has not grown, what rises in between has, by its rise", () => {
  const wave = (done: number): number => 200 + 80 * Math.abs(Math.sin(done / 10));
  assert.ok(Math.abs(growthOf(wave)) <= 1);
  assert.ok(growthOf((done) => wave(done) + done / 10) >= 60);
});

test("the time before servers are warm does not count, nor a campaign that ends in it", () => {
  assert.equal(
    growthOf((done) => (done < 100 ? done : 100)),
    0,
  );
  assert.equal(
    growthOf((done) => done, 1_000, 5_000),
    0,
  );
});

test("over 2,000,000 inputs 40 bytes of each are too much, and a cache that fills up in the first half is not (F12)", () => {
  const goal = 2_000_000;
  const mib = 1_048_576;
  const grownBy = (memoryMb: (done: number) => number): number => {
    const floors = new MemoryFloors(goal, warmFromOf(goal));
    for (let done = 0; done <= goal; done += 1_000) floors.note(done, "server", memoryMb(done));
    return floors.growthMb("server");
  };
  const wave = (done: number): number => 200 + 60 * Math.abs(Math.sin(done / 30_000));
  assert.ok(grownBy((done) => wave(done) + (40 * done) / mib) > GROWTH_MAX_MB);
  assert.ok(grownBy((done) => wave(done) + (20 * done) / mib) < GROWTH_MAX_MB);
  assert.ok(grownBy((done) => wave(done) + Math.min(100, (200 * done) / mib)) < GROWTH_MAX_MB);
});
