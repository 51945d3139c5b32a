// Tests the pages' thresholds against the specification.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DISK_LIMITS, DISK_STEPS, fullness, HEAT_LIMITS, HEAT_STEPS } from "./thresholds.ts";

test("pages show the steps of the console's rules, the worst first (spec 3.1, 3.2)", () => {
  assert.deepEqual(DISK_STEPS, [95, 90, 80]);
  assert.deepEqual(HEAT_STEPS, [85, 75, 65]);
  assert.deepEqual(
    [...DISK_LIMITS, ...HEAT_LIMITS].map(({ label }) => label),
    ["warning above 80 %", "critical above 95 %", "warning above 65 °C", "critical above 85 °C"],
  );
});

test("something is full from above 80 % and 95 % on, and an unknown share is not", () => {
  assert.deepEqual(
    [null, 80, 80.01, 95, 95.01, 999].map((percent) => fullness(percent)),
    ["ok", "ok", "warning", "warning", "critical", "critical"],
  );
});
