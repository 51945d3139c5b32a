// Tests of the arithmetic behind every figure of the benchmark.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compare, median, percentile } from "./measure.ts";

test("the median is the middle value, or the mean of the two in the middle", () => {
  assert.equal(median([5, 1, 9]), 5);
  assert.equal(median([4, 1, 2, 9]), 3);
  assert.equal(median([7]), 7);
  assert.throws(() => median([]), RangeError);
});

test("the 99th percentile of 100 values leaves one above it", () => {
  const values = Array.from({ length: 100 }, (_, at) => 100 - at);
  assert.equal(percentile(values, 0.99), 99);
  assert.equal(percentile(values, 1), 100);
  assert.equal(percentile([3], 0.99), 3);
});

test("a comparison is the median of pairwise ratios, not the ratio of medians", async () => {
  // The machine slows down by half in the middle: each pair but one still gives 2.
  const theirs = [1, 10, 10, 5, 5, 5];
  const ours = [1, 20, 20, 10, 10, 100];
  const result = await compare(replay(ours), replay(theirs));
  assert.equal(result.ratio, 2);
  assert.deepEqual(result.ratios, [2, 2, 2, 2, 20]);
  assert.equal(result.theirs, 5);
});

test("sides take turns in leading, and the first run of each is thrown away", async () => {
  const order: string[] = [];
  const side = (name: string) => () => {
    order.push(name);
    return Promise.resolve(1);
  };
  await compare(side("ours"), side("theirs"));
  assert.equal(order.join(" "), "theirs ours ours theirs theirs ours ours theirs theirs ours ours theirs");
});

test("fewer than five rounds are refused", async () => {
  await assert.rejects(compare(replay([]), replay([]), 4), RangeError);
});

function replay(values: readonly number[]): () => Promise<number> {
  let at = 0;
  return () => {
    const value = values[at];
    at += 1;
    return value === undefined ? Promise.reject(new Error("ran too often")) : Promise.resolve(value);
  };
}
