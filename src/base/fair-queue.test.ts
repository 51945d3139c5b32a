// Tests of the queue whose parties take turns.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FairQueue } from "./fair-queue.ts";

test("who has put in many waits behind the others' first ones", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "a2", "a3"]) queue.push("a", item);
  queue.push("b", "b1");
  queue.push("c", "c1");
  const out = Array.from({ length: 5 }, () => queue.shift());
  assert.deepEqual(out, ["a1", "b1", "c1", "a2", "a3"]);
  assert.equal(queue.shift(), undefined);
  assert.equal(queue.size, 0);
});

test("how much each has waiting, and who has most", () => {
  const queue = new FairQueue<string>();
  assert.deepEqual(queue.longest(), []);
  queue.push("a", "a1");
  for (const item of ["b1", "b2"]) queue.push("b", item);
  assert.deepEqual([queue.sizeOf("a"), queue.sizeOf("b"), queue.sizeOf("c")], [1, 2, 0]);
  assert.deepEqual(queue.longest(), ["b1", "b2"]);
});

test("what does not fit holds up its own party alone", () => {
  const queue = new FairQueue<number>();
  for (const item of [9, 1]) queue.push("a", item);
  queue.push("b", 2);
  assert.equal(
    queue.shift((item) => item < 5),
    2,
  );
  assert.equal(
    queue.shift((item) => item < 5),
    undefined,
  );
  assert.equal(queue.remove("a", 9), true);
  assert.equal(queue.remove("a", 9), false);
  assert.equal(queue.has("a"), true);
  assert.equal(
    queue.shift((item) => item < 5),
    1,
  );
  assert.equal(queue.has("a"), false);
});

test("nothing is lost or doubled, and each party's items keep their order", () => {
  const step = fc.record({ party: fc.constantFrom("a", "b", "c"), takes: fc.nat(2) });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const queue = new FairQueue<readonly [string, number]>();
      const out: (readonly [string, number])[] = [];
      steps.forEach(({ party, takes }, at) => {
        queue.push(party, [party, at]);
        for (let i = 0; i < takes; i++) {
          const item = queue.shift();
          if (item !== undefined) out.push(item);
        }
      });
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) out.push(item);
      assert.equal(out.length, steps.length);
      for (const party of ["a", "b", "c"]) {
        const own = out.filter(([name]) => name === party).map(([, at]) => at);
        assert.deepEqual(
          own,
          own.toSorted((a, b) => a - b),
        );
      }
    }),
  );
});
