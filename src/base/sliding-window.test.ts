// Tests of the sliding window: both sides of count and window, networks for addresses, and the memory bound.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "./clock.ts";
import { RATE_LIMIT_ADDRESSES } from "./limits.ts";
import { SlidingWindow } from "./sliding-window.ts";

test("so often in any stretch of the window and no more, and the wait is told to the millisecond (D17)", () => {
  const clock = new ManualClock();
  const limiter = new SlidingWindow(clock, { count: 3, windowMs: 1_000 });
  assert.deepEqual([limiter.take("a"), limiter.take("a")], [0, 0]);
  clock.advance(400);
  assert.equal(limiter.take("a"), 0);
  assert.equal(limiter.take("a"), 600);
  clock.advance(599);
  assert.equal(limiter.take("a"), 1);
  clock.advance(1);
  assert.deepEqual([limiter.take("a"), limiter.take("a"), limiter.take("a")], [0, 0, 400]);
  assert.equal(limiter.take("b"), 0);
});

test("the addresses of one IPv6 /64 share what one may do; those of the next have their own (D17)", () => {
  const limiter = new SlidingWindow(new ManualClock(), { count: 2, windowMs: 1_000 });
  assert.equal(limiter.take("2001:db8::1"), 0);
  assert.equal(limiter.take("2001:db8::dead:beef"), 0);
  assert.ok(limiter.take("2001:db8:0:0:ffff::2") > 0);
  assert.ok(limiter.waitMs("2001:db8::1") > 0);
  limiter.giveBack("2001:db8::77");
  assert.equal(limiter.waitMs("2001:db8::1"), 0);
  assert.equal(limiter.take("2001:db8:0:1::1"), 0);
});

test("what was given back does not count; a flood of addresses forgets the longest unseen and nobody else", () => {
  const limiter = new SlidingWindow(new ManualClock(), { count: 1, windowMs: 1_000 });
  limiter.take("a");
  limiter.giveBack("a");
  assert.equal(limiter.take("a"), 0);
  limiter.take("first");
  for (let at = 0; at < RATE_LIMIT_ADDRESSES - 1; at++) limiter.take(`n${at}`);
  assert.ok(limiter.waitMs("first") > 0);
  for (let at = 0; at < RATE_LIMIT_ADDRESSES - 1; at++) limiter.take(`m${at}`);
  assert.ok(limiter.waitMs("first") > 0);
  assert.equal(limiter.waitMs("n0"), 0);
});

test("an act that is counted beyond the limit displaces the oldest, and one of a moment can be taken back (W-03)", () => {
  const clock = new ManualClock();
  const limiter = new SlidingWindow(clock, { count: 2, windowMs: 1_000 });
  const moments = [0, 1, 2].map(() => {
    limiter.count("a");
    clock.advance(100);
    return clock.steadyMs() - 100;
  });
  assert.deepEqual(limiter.momentsOf("a"), moments.slice(1));
  assert.equal(limiter.waitMs("a"), 800);
  limiter.giveBack("a", moments[1]);
  assert.deepEqual(limiter.momentsOf("a"), moments.slice(2));
  limiter.giveBack("a", moments[0]);
  assert.deepEqual(limiter.momentsOf("a"), moments.slice(2));
  limiter.clear("a");
  assert.deepEqual(limiter.momentsOf("a"), []);
});
