// Latency percentiles against the definition, and counters.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LatencyWindow, nearestRank } from "./latency-window.ts";

/** Nearest rank by definition: the smallest value that at least p percent of all do not exceed. */
function byDefinition(values: readonly number[], p: number): number {
  const candidates = values.filter(
    (value) => values.filter((other) => other <= value).length * 100 >= p * values.length,
  );
  return candidates.length === 0 ? 0 : Math.min(...candidates);
}

test("percentiles are those of the definition, over exactly the last operations (D12)", {
  timeout: 60_000,
}, () => {
  const latencies = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 60 });
  fc.assert(
    fc.property(latencies, fc.integer({ min: 1, max: 30 }), (all, capacity) => {
      const window = new LatencyWindow(capacity);
      for (const latencyMs of all) window.record(latencyMs);
      const last = all.slice(-capacity);
      assert.deepEqual(window.summary(), {
        p50Ms: byDefinition(last, 50),
        p95Ms: byDefinition(last, 95),
        p99Ms: byDefinition(last, 99),
        samples: last.length,
        sumMs: all.reduce((sum, latencyMs) => sum + latencyMs, 0),
      });
    }),
    { numRuns: 2_000 },
  );
});

test("operation 1025 pushes the first out (D12)", () => {
  const window = new LatencyWindow();
  window.record(1_000_000);
  for (let at = 0; at < 1_023; at++) window.record(1);
  assert.equal(window.summary().samples, 1_024);
  assert.equal(nearestRank([1, 1_000_000], 100), 1_000_000);
  for (let at = 0; at < 10; at++) window.record(2);
  // 1014 ones and 10 twos: the 99th percentile is rank 1014 of 1024.
  assert.deepEqual(window.summary(), { p50Ms: 1, p95Ms: 1, p99Ms: 1, samples: 1_024, sumMs: 1_001_043 });
  window.record(2);
  assert.equal(window.summary().p99Ms, 2);
});

test("no operation is 0 with 0 samples; a negative or absurd latency is 0 and never NaN (C-01, D12)", () => {
  const window = new LatencyWindow();
  assert.deepEqual(window.summary(), { p50Ms: 0, p95Ms: 0, p99Ms: 0, samples: 0, sumMs: 0 });
  for (const latencyMs of [-5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0]) {
    window.record(latencyMs);
  }
  assert.deepEqual(window.summary(), { p50Ms: 0, p95Ms: 0, p99Ms: 0, samples: 5, sumMs: 0 });
});
