// Parsing of end times: spans, times of day in a zone, weekdays, dates, and invalid texts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { UNTIL_TEXT_MAX_LENGTH, untilSeconds } from "./until-text.ts";

/** A Monday. */
const NOW = "2026-11-23T09:30:00Z";
const until = (text: string, timeZone = "UTC", now = NOW): string => {
  const end = untilSeconds(text, { nowMs: Date.parse(now), timeZone });
  return typeof end === "number" ? new Date(end * 1_000).toISOString().slice(0, 16) : end.problem;
};

test("a span is reckoned from now, or from where it begins", () => {
  for (const [text, end] of [
    ["2h", "2026-11-23T11:30"],
    ["for 2h", "2026-11-23T11:30"],
    ["90 min", "2026-11-23T11:00"],
    ["90m", "2026-11-23T11:00"],
    ["1d 12h", "2026-11-24T21:30"],
    ["1d12h", "2026-11-24T21:30"],
    ["1 day and 12 hours", "2026-11-24T21:30"],
    ["2 weeks", "2026-12-07T09:30"],
    ["  3 Hours ", "2026-11-23T12:30"],
  ] as const)
    assert.equal(until(text), end, text);
  const startMs = Date.parse("2026-11-24T00:00:00Z");
  assert.equal(
    untilSeconds("2h", { nowMs: Date.parse(NOW), startMs, timeZone: "UTC" }),
    startMs / 1_000 + 7_200,
  );
});

test("a time of day is the next one, a weekday the next of its name, by the clock of the zone", () => {
  for (const [text, zone, end] of [
    ["until tomorrow 08:00", "UTC", "2026-11-24T08:00"],
    ["until tomorrow 08:00", "Europe/Berlin", "2026-11-24T07:00"],
    ["tomorrow at 8:00", "America/New_York", "2026-11-24T13:00"],
    ["18:00", "UTC", "2026-11-23T18:00"],
    ["08:00", "UTC", "2026-11-24T08:00"],
    ["today 18:00", "Europe/Berlin", "2026-11-23T17:00"],
    ["Friday 18:00", "UTC", "2026-11-27T18:00"],
    ["mon 10:00", "UTC", "2026-11-23T10:00"],
    ["monday 09:30", "UTC", "2026-11-30T09:30"],
    ["2026-12-01 08:00", "Asia/Tokyo", "2026-11-30T23:00"],
    ["2026-12-01T08:00", "UTC", "2026-12-01T08:00"],
    ["2026-12-01T08:00:00+02:00", "Asia/Tokyo", "2026-12-01T06:00"],
    ["2026-12-01T08:00Z", "Asia/Tokyo", "2026-12-01T08:00"],
  ] as const)
    assert.equal(until(text, zone), end, `${text} in ${zone}`);
  // It is Tuesday there already.
  assert.equal(until("tomorrow 08:00", "Asia/Tokyo", "2026-11-23T20:00:00Z"), "2026-11-24T23:00");
});

test("where the clock is put forward the moment after is meant, where a time comes twice the first", () => {
  const eve = "2026-03-28T12:00:00Z";
  assert.equal(until("tomorrow 02:30", "Europe/Berlin", eve), "2026-03-29T01:30");
  assert.equal(until("tomorrow 08:00", "Europe/Berlin", eve), "2026-03-29T06:00");
  assert.equal(until("tomorrow 02:30", "Europe/Berlin", "2026-10-24T12:00:00Z"), "2026-10-25T00:30");
  assert.equal(until("tomorrow 08:00", "Europe/Berlin", "2026-10-24T12:00:00Z"), "2026-10-25T07:00");
});

test("what names no moment is refused with how to write one, what is over as over", () => {
  for (const text of [
    "",
    "tomorrow",
    "soon",
    "2",
    "2x",
    "25:00",
    "08:60",
    "2026-02-30 08:00",
    "2h ago",
    "Fri",
    "x".repeat(UNTIL_TEXT_MAX_LENGTH + 1),
  ])
    assert.match(until(text), /^write for how long, such as "2h"/, text);
  assert.equal(until("today 08:00"), "that moment is over");
  assert.equal(until("2020-01-01 08:00"), "that moment is over");
  assert.equal(until("0h"), "2026-11-23T09:30", "whoever takes it says that it must be in the future");
  assert.equal(until("18:00", "Mars/Olympus"), "no time zone has this name");
});
