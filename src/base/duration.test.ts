// Parsing and formatting spans of time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, parseDuration } from "./duration.ts";

test("a span is a number with a unit, and only 0 needs none", () => {
  for (const [text, ms] of [
    ["7d", 604_800_000],
    [" 36 H ", 129_600_000],
    ["2w", 1_209_600_000],
    ["90m", 5_400_000],
    ["0", 0],
    ["0d", 0],
  ] as const) {
    assert.equal(parseDuration(text), ms, text);
  }
  for (const text of ["", "7", "d", "-1d", "1.5d", "1y", "1d 2h", "9999999999d"]) {
    assert.equal(parseDuration(text), undefined, text);
  }
});

test("a span is told in its largest whole unit", () => {
  const spans = [86_400_000, 2_592_000_000, 129_600_000, 60_000, 1_000, 0];
  assert.deepEqual(spans.map(formatDuration), [
    "1 day",
    "30 days",
    "36 hours",
    "1 minute",
    "1 second",
    "0 seconds",
  ]);
});
