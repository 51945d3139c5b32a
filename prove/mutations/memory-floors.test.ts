// The floors of memory: what grows is told from what goes up and down.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryFloors } from "./memory-floors.ts";

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
