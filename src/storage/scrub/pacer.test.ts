// Tests that a pacer keeps its rate over any reads, and saves up at most a tenth of a second.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Pacer } from "./pacer.ts";

test("however it is read, never more than the rate and a tenth of a second of it", () => {
  const reads = fc.array(fc.record({ bytes: fc.nat(1_000_000), idleMs: fc.nat(5_000) }), { minLength: 1 });
  fc.assert(
    fc.property(reads, fc.integer({ min: 1, max: 10_000_000 }), (list, rate) => {
      const pacer = new Pacer(rate);
      let nowMs = 12_345;
      for (const { bytes, idleMs } of list) {
        const waitMs = pacer.waitMs(bytes, nowMs);
        const leastMs = (bytes / rate) * 1_000 - 100;
        assert.ok(waitMs >= leastMs - 1e-6, `${waitMs} after ${bytes} bytes at ${rate}`);
        assert.ok(waitMs <= (bytes / rate) * 1_000 + 1e-6);
        nowMs += waitMs + idleMs;
      }
    }),
  );
});

test("reading without a break waits exactly as long as the rate says", () => {
  const pacer = new Pacer(1_000);
  let nowMs = 0;
  for (let read = 0; read < 10; read++) nowMs += pacer.waitMs(100, nowMs);
  assert.equal(nowMs, 900);
});
