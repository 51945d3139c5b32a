// Token buckets: taking, refilling and separate keys.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ManualClock } from "./clock.ts";
import { TokenBuckets } from "./token-buckets.ts";

test("40 at once, then 20 a second; each caller has a bucket of its own", () => {
  const clock = new ManualClock();
  const buckets = new TokenBuckets(clock, { perSecond: 20, burst: 40 });
  for (let ask = 0; ask < 40; ask++) assert.equal(buckets.take("a"), 0);
  assert.equal(buckets.take("a"), 50);
  assert.equal(buckets.take("b"), 0);
  clock.advance(49);
  assert.equal(buckets.take("a"), 1);
  clock.advance(1);
  assert.equal(buckets.take("a"), 0);
  assert.equal(buckets.take("a"), 50);
  clock.advance(3_600_000);
  assert.equal(
    Array.from({ length: 100 }, () => buckets.take("a")).filter((waitMs) => waitMs === 0).length,
    40,
  );
});

test("whatever the pace, no stretch of time has more than burst and what is due in it", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 200 }), (gapsMs) => {
      const clock = new ManualClock();
      const buckets = new TokenBuckets(clock, { perSecond: 20, burst: 40 });
      const granted: number[] = [];
      for (const gapMs of gapsMs) {
        clock.advance(gapMs);
        for (let ask = 0; ask < 3; ask++) if (buckets.take("a") === 0) granted.push(clock.steadyMs());
      }
      for (const [from, start] of granted.entries()) {
        for (const [to, end] of granted.entries()) {
          if (to >= from) assert.ok(to - from + 1 <= 40 + ((end - start) / 1_000) * 20 + 1e-6);
        }
      }
    }),
    { numRuns: 30 },
  );
});

test("a part can be kept for others, and what was used already is charged without asking", () => {
  const clock = new ManualClock();
  const buckets = new TokenBuckets(clock, { burst: 10, perSecond: 1 });
  assert.equal(buckets.takeKeeping("a", 5, 0.5), true);
  assert.equal(buckets.takeKeeping("a", 1, 0.5), false);
  assert.equal(buckets.takeKeeping("a", 1, 0), true);
  buckets.charge("a", 1_000);
  assert.equal(buckets.level("a"), -1);
  clock.advance(10_000);
  assert.equal(buckets.level("a"), 0);
  clock.advance(3_600_000);
  assert.equal(buckets.level("a"), 1);
});
