// Tests of the arithmetic behind the progress bar.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { formatSeconds, ProgressMeter, progressLine } from "./progress.ts";

test("the rate is that of the last five seconds, and time left follows from it", () => {
  const clock = new ManualClock();
  const meter = new ProgressMeter(clock);
  meter.totalBytes = 100_000;
  meter.totalFiles = 1;
  meter.isTotalKnown = true;
  for (let second = 0; second < 20; second++) {
    clock.advance(1_000);
    meter.doneBytes += 1_000;
    meter.sampleRate();
  }
  assert.equal(meter.sampleRate(), 1_000);
  assert.equal(meter.secondsLeft(1_000), 80);
  for (let second = 0; second < 10; second++) {
    clock.advance(1_000);
    meter.doneBytes += 4_000;
    meter.sampleRate();
  }
  assert.equal(meter.sampleRate(), 4_000);
  assert.equal(meter.fraction, 0.6);
});

test("nothing is promised while the total is not known or nothing moves", () => {
  const meter = new ProgressMeter(new ManualClock());
  meter.totalBytes = 10;
  assert.equal(meter.fraction, undefined);
  assert.equal(meter.secondsLeft(5), undefined);
  meter.isTotalKnown = true;
  assert.equal(meter.secondsLeft(0), undefined);
  assert.equal(meter.sampleRate(), 0);
});

test("a transfer that starts a file anew goes back, and never below nothing", () => {
  const clock = new ManualClock();
  const meter = new ProgressMeter(clock);
  meter.totalBytes = 100;
  meter.isTotalKnown = true;
  meter.doneBytes = 50;
  clock.advance(1_000);
  meter.sampleRate();
  meter.doneBytes -= 50;
  clock.advance(1_000);
  assert.equal(meter.fraction, 0);
  assert.equal(meter.sampleRate(), 0);
});

test("only empty files: the part that is done is counted in files", () => {
  const meter = new ProgressMeter(new ManualClock());
  meter.isTotalKnown = true;
  assert.equal(meter.fraction, 1);
  meter.totalFiles = 4;
  meter.doneFiles = 1;
  assert.equal(meter.fraction, 0.25);
});

test("the bar fits its terminal and says percent, bytes, rate, time left and files", () => {
  const meter = new ProgressMeter(new ManualClock());
  Object.assign(meter, {
    totalBytes: 4_096,
    doneBytes: 1_024,
    totalFiles: 8,
    doneFiles: 2,
    isTotalKnown: true,
  });
  const line = progressLine(meter, 1_024, 200);
  assert.equal(line, "[######------------------]  25 %  1 KiB of 4 KiB  1 KiB/s  3 s left  2/8 files");
  // On a narrow terminal the bar shrinks, then goes, then whole parts from the end; no part is cut.
  const ends: [columns: number, line: string][] = [
    [80, line],
    [72, "[####------------]  25 %  1 KiB of 4 KiB  1 KiB/s  3 s left  2/8 files"],
    [66, "[##--------]  25 %  1 KiB of 4 KiB  1 KiB/s  3 s left  2/8 files"],
    [60, " 25 %  1 KiB of 4 KiB  1 KiB/s  3 s left  2/8 files"],
    [40, " 25 %  1 KiB of 4 KiB  1 KiB/s"],
    [4, " 25"],
  ];
  for (const [columns, expected] of ends) {
    assert.equal(progressLine(meter, 1_024, columns), expected);
    assert.ok(expected.length < columns);
  }
  meter.isTotalKnown = false;
  assert.match(progressLine(meter, 1_024, 200), /\? %.*of 4 KiB\+.*8\+ files/);
});

test("spans of time are read in two units at most", () => {
  assert.deepEqual([0.2, 59, 60, 200, 3_600, 7_500, 90_000].map(formatSeconds), [
    "1 s",
    "59 s",
    "1 min 0 s",
    "3 min 20 s",
    "1 h 0 min",
    "2 h 5 min",
    "over a day",
  ]);
});
