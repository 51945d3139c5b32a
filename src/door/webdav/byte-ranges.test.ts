// Tests how Range headers are read.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readRanges } from "./byte-ranges.ts";

test("ranges are read, cut to the file and merged", () => {
  const read = (spec: string): unknown => {
    const ranges = readRanges(`bytes=${spec}`, 100);
    return typeof ranges === "string" ? ranges : ranges.map(({ start, end }) => [start, end]);
  };
  assert.deepEqual(read("0-9"), [[0, 10]]);
  assert.deepEqual(read("90-"), [[90, 100]]);
  assert.deepEqual(read("-5"), [[95, 100]]);
  assert.deepEqual(read("-500"), [[0, 100]]);
  assert.deepEqual(read("50-60, 0-9 ,8-20"), [
    [0, 21],
    [50, 61],
  ]);
  assert.deepEqual(read("0-9,10-19"), [[0, 20]]);
  assert.deepEqual(read("90-18446744073709551615"), [[90, 100]]);
  assert.deepEqual(read("100-"), "none");
  assert.deepEqual(read("-0"), "none");
  for (const bad of ["", "-", "5-4", "a-b", "1-2-3", "99999999999999999999-"]) {
    assert.equal(readRanges(`bytes=${bad}`, 100), bad === "" ? "all" : "all", bad);
  }
  assert.equal(readRanges(undefined, 100), "all");
  assert.equal(readRanges("items=0-1", 100), "all");
  // A longer one costs as much again for each blank in it.
  assert.equal(readRanges(`bytes=${" ".repeat(2_000)}0-1`, 100), "all");
});

test("more than eight ranges that lie apart are answered by the whole file", () => {
  const spec = (count: number): string =>
    Array.from({ length: count }, (_, i) => `${i * 10}-${i * 10 + 1}`).join(",");
  assert.equal(readRanges(`bytes=${spec(8)}`, 1000).length, 8);
  assert.equal(readRanges(`bytes=${spec(9)}`, 1000), "all");
});

test("merged ranges are sorted, apart from one another and inside the file", () => {
  const bound = fc.nat({ max: 120 });
  fc.assert(
    fc.property(fc.array(fc.tuple(bound, bound), { minLength: 1, maxLength: 20 }), (pairs) => {
      const asked = pairs.map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
      const ranges = readRanges(`bytes=${asked.map(([a, b]) => `${a}-${b}`).join(",")}`, 100);
      if (typeof ranges === "string") return;
      const wanted = new Set<number>();
      for (const [a, b] of asked) for (let i = a; i <= Math.min(b, 99); i++) wanted.add(i);
      const got = ranges.flatMap(({ start, end }) =>
        Array.from({ length: end - start }, (_, i) => start + i),
      );
      assert.deepEqual(
        got,
        [...wanted].toSorted((a, b) => a - b),
      );
    }),
  );
});
