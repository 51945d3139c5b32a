// Tests of the sampler of log lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "./clock.ts";
import { LogSampler } from "./log-sampler.ts";

test("ten lines of a kind are written in a minute, and the next minute's first says how many were left out", () => {
  const clock = new ManualClock();
  const sampler = new LogSampler(clock);
  for (let i = 0; i < 10; i++) assert.deepEqual(sampler.take("a"), {});
  for (let i = 0; i < 7; i++) assert.equal(sampler.take("a"), undefined);
  assert.deepEqual(sampler.take("b"), {});
  clock.advance(59_999);
  assert.equal(sampler.take("a"), undefined);
  clock.advance(1);
  assert.deepEqual(sampler.take("a"), { left_out: 8 });
  assert.deepEqual(sampler.take("a"), {});
});
