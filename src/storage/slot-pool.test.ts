// A pool of slots: so many at once, the rest in their order, and none lost by a failure.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SlotPool } from "./slot-pool.ts";

test("so many run at once, the others in the order of their coming, and a slot that is free is taken again", async () => {
  const pool = new SlotPool(2);
  const begun: number[] = [];
  const ends = Array.from({ length: 6 }, () => Promise.withResolvers<number>());
  const run = (at: number): Promise<number> =>
    pool.run("u", () => {
      begun.push(at);
      return ends[at]!.promise;
    });
  const first = [0, 1, 2, 3].map(run);
  assert.deepEqual(begun, [0, 1]);
  ends[1]!.resolve(11);
  assert.equal(await first[1], 11);
  assert.deepEqual(begun, [0, 1, 2]);
  ends[0]!.reject(new Error("broken"));
  await assert.rejects(first[0]!, /broken/);
  assert.deepEqual(begun, [0, 1, 2, 3]);
  ends[2]!.resolve(12);
  ends[3]!.resolve(13);
  assert.deepEqual(await Promise.all(first.slice(2)), [12, 13]);
  const later = [4, 5].map(run);
  assert.deepEqual(begun, [0, 1, 2, 3, 4, 5]);
  ends[4]!.resolve(14);
  ends[5]!.resolve(15);
  assert.deepEqual(await Promise.all(later), [14, 15]);
});

test("who has much waiting is passed by those with little", async () => {
  const pool = new SlotPool(1);
  const begun: string[] = [];
  const run = (user: string, at: number): Promise<void> =>
    pool.run(user, () => {
      begun.push(user + at);
      return Promise.resolve();
    });
  await Promise.all([run("a", 0), run("a", 1), run("a", 2), run("b", 0), run("c", 0)]);
  assert.deepEqual(begun, ["a0", "a1", "b0", "c0", "a2"]);
});
