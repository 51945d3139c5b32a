// Tests that times are written as Date writes them.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { httpDate, readHttpDate, secondText } from "./date-text.ts";

test("a time is written as Date writes it, to the second", () => {
  // One day to the next, the first and the last years, and times before 1970 and after 9999.
  const ms = fc.oneof(
    fc.integer({ min: 0, max: 253_402_300_799_999 }),
    fc.integer({ min: -(10 ** 13), max: 8_640_000_000_000_000 }),
    fc.integer({ min: 1_700_000_000_000, max: 1_700_200_000_000 }),
    fc.double({ min: 0, max: 2 ** 41, noNaN: true }),
    fc.constantFrom(0, 86_399_999, 86_400_000, 951_782_400_000, 253_402_300_799_999, 253_402_300_800_000),
  );
  fc.assert(
    fc.property(ms, (at) => {
      assert.equal(httpDate(at), new Date(at).toUTCString());
      assert.equal(secondText(at), new Date(at).toISOString().replace(/\.\d+Z$/u, "Z"));
    }),
    { numRuns: 1_000 },
  );
  assert.equal(httpDate(Number.NaN), "Invalid Date");
  assert.throws(() => secondText(Number.NaN), RangeError);
});

test("a time is read in HTTP's three forms, each in Greenwich, and nothing else is a time", () => {
  const ms = Date.UTC(1994, 10, 6, 8, 49, 37);
  for (const text of [
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
  ]) {
    assert.equal(readHttpDate(text), ms, text);
  }
  for (const text of [
    "0",
    "1",
    "1994-11-06T08:49:37Z",
    "Sun, 06 Nov 1994 08:49:37",
    "Sun, 99 Nov 1994 08:49:37 GMT",
  ]) {
    assert.equal(readHttpDate(text), undefined, text);
  }
});
