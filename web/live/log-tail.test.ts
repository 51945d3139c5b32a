// Tests a followed log: lines of both the tail and the stream appear once, at any overlap.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { LogLine } from "#wire/webapi/log-tail.ts";
import { joined } from "./log-tail.ts";

const line = (message: string): LogLine => ({ ts: null, priority: null, message });

test("a tail that was read after following began joins it without a line twice or missing", () => {
  const count = fc.integer({ min: 0, max: 30 });
  fc.assert(
    fc.property(count, count, count, (before, between, after) => {
      const all = Array.from({ length: before + between + after }, (_, index) => line(`line ${index}`));
      const tail = all.slice(0, before + between);
      const followed = all.slice(before);
      assert.deepEqual(joined(tail, followed), all);
    }),
  );
});

test("a tail that already has more than was followed so far stands as it is", () => {
  const all = ["a", "b", "c", "d"].map(line);
  assert.deepEqual(joined(all, all.slice(1, 3)), all);
});

test("nothing in common: the one stands behind the other", () => {
  assert.deepEqual(
    joined([line("a")], [line("b")]).map(({ message }) => message),
    ["a", "b"],
  );
});
