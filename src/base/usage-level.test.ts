// The levels of a quota's use, at both sides of each.
import assert from "node:assert/strict";
import { test } from "node:test";
import { usageLevel } from "./usage-level.ts";

test("a user is yellow above 80 % of the quota and red above 95 %, to the byte (spec 3.1)", () => {
  const quota = 10_000n;
  assert.deepEqual(
    [0n, 8_000n, 8_001n, 9_500n, 9_501n, 20_000n].map((used) => usageLevel(used, quota)),
    ["ok", "ok", "yellow", "yellow", "red", "red"],
  );
  assert.equal(usageLevel(2n ** 64n - 2n, 2n ** 64n - 1n), "red");
});
