// Tests of rates: growth, restarts, the window of 60 s (decision D9, T4, failures M-05, M-06).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { NodeCounters } from "./node-counters.ts";
import type { NodeSample } from "./node-sample.ts";
import { nodeSample } from "./sample.fixture.ts";

/** A node with a poll every 5 s; each call is one poll later. */
function polled(): (overrides: Partial<NodeSample>) => ReturnType<NodeCounters["record"]> {
  const counters = new NodeCounters();
  let steadyMs = 0;
  return (overrides) => {
    steadyMs += 5_000;
    return counters.record(nodeSample({ steadyMs, ...overrides }));
  };
}

function isRate(rate: number | null): boolean {
  return rate === null || (Number.isFinite(rate) && rate >= 0);
}

describe("rates of a node", () => {
  it("a first answer gives none, the second growth over time; MB are 10^6 bytes (D9)", () => {
    const poll = polled();
    assert.deepEqual(poll({ bytesWritten: 7e6 }), {
      writeMbps: null,
      readMbps: null,
      writeIops: null,
      readIops: null,
      errorRatePct: null,
    });
    const rates = poll({ bytesWritten: 12e6, bytesRead: 1e6, writeOps: 10, readOps: 30 });
    assert.deepEqual(rates, {
      writeMbps: 1,
      readMbps: 0.2,
      writeIops: 2,
      readIops: 6,
      errorRatePct: 0,
    });
  });

  it("the wall clock may jump: rates are measured on the steady one", () => {
    const poll = polled();
    poll({ wallMs: 1_790_000_000_000 });
    assert.equal(poll({ wallMs: 1_600_000_000_000, bytesWritten: 5e6 }).writeMbps, 1);
  });

  it("a lower value is a restart: the new value over the time since then, never negative (D9, M-06)", () => {
    const poll = polled();
    poll({ bytesWritten: 900e6, writeOps: 900 });
    const rates = poll({ bytesWritten: 4e6, writeOps: 8, uptimeSeconds: 2 });
    assert.equal(rates.writeMbps, 2);
    assert.equal(rates.writeIops, 4);
  });

  it("a changed last_restart or boot id is a restart even where the new value is higher", () => {
    for (const change of [{ lastRestartUnix: 1_789_999_999 }, { bootId: "another" }]) {
      const poll = polled();
      poll({ bytesWritten: 1e6, readOps: 100 });
      const rates = poll({ bytesWritten: 8e6, readOps: 120, uptimeSeconds: 4, ...change });
      assert.equal(rates.writeMbps, 2);
      assert.equal(rates.readIops, 30);
    }
  });

  it("a counter that was lower tells of the restart for those that were not", () => {
    const poll = polled();
    poll({ bytesWritten: 1e6, writeOps: 1_000 });
    assert.equal(poll({ bytesWritten: 8e6, writeOps: 5, uptimeSeconds: 4 }).writeMbps, 2);
  });

  it("an uptime that is longer than the time since the answer before, or unknown, is not believed", () => {
    for (const uptimeSeconds of [1e9, null, Number.NaN, -3]) {
      const poll = polled();
      poll({ bytesWritten: 900e6 });
      assert.equal(poll({ bytesWritten: 5e6, uptimeSeconds }).writeMbps, 1);
    }
  });

  it("in the first second after a restart a rate is over one second", () => {
    const poll = polled();
    poll({ bytesWritten: 900e6 });
    assert.equal(poll({ bytesWritten: 5e6, uptimeSeconds: 0 }).writeMbps, 5);
  });

  it("a value that is not known gives no rate, and the next one covers the time between", () => {
    const poll = polled();
    poll({ bytesWritten: 0 });
    for (const bytesWritten of [null, Number.NaN, Number.POSITIVE_INFINITY, -1]) {
      assert.equal(poll({ bytesWritten }).writeMbps, null);
    }
    assert.equal(poll({ bytesWritten: 50e6 }).writeMbps, 2);
  });

  it("an answer twice at one moment divides nothing by zero", () => {
    const counters = new NodeCounters();
    counters.record(nodeSample({ steadyMs: 0 }));
    counters.record(nodeSample({ steadyMs: 5_000, bytesWritten: 5e6 }));
    assert.equal(counters.record(nodeSample({ steadyMs: 5_000, bytesWritten: 10e6 })).writeMbps, null);
    assert.equal(counters.record(nodeSample({ steadyMs: 10_000, bytesWritten: 10e6 })).writeMbps, 1);
  });
});

describe("error rate (T4)", () => {
  it("is given from 20 operations on, and not under 20", () => {
    for (const [ops, expected] of [
      [19, null],
      [20, 50],
    ] as const) {
      const poll = polled();
      poll({});
      assert.equal(poll({ writeOps: ops - 4, readOps: 4, errors: 10 }).errorRatePct, expected);
    }
  });

  it("sees the last 60 s and nothing before", () => {
    const poll = polled();
    poll({});
    assert.equal(poll({ writeOps: 100, errors: 100 }).errorRatePct, 100);
    for (let polls = 1; polls <= 11; polls++) {
      // Until here the failures are up to 60 s old.
      assert.ok((poll({ writeOps: 100 + polls * 20, errors: 100 }).errorRatePct ?? 0) > 0);
    }
    assert.equal(poll({ writeOps: 100 + 12 * 20, errors: 100 }).errorRatePct, 0);
  });

  it("more failures than operations are all of them, and no more", () => {
    const poll = polled();
    poll({});
    assert.equal(poll({ writeOps: 20, errors: 5_000 }).errorRatePct, 100);
  });

  it("is not given while one of its counters is not known: missing data is not healthy", () => {
    for (const missing of ["errors", "writeOps", "readOps"] as const) {
      const poll = polled();
      poll({});
      assert.equal(poll({ writeOps: 100, readOps: 100, [missing]: null }).errorRatePct, null);
    }
  });

  it("divides by all that was attempted, of a node that counts it: 25 reads and 20 failed sign-ins are 44 %", () => {
    const poll = polled();
    poll({ attempts: 0 });
    assert.equal(poll({ readOps: 25, errors: 20, attempts: 45 }).errorRatePct, (20 / 45) * 100);
    const signIns = polled();
    signIns({ attempts: 0 });
    assert.equal(signIns({ errors: 1, attempts: 20 }).errorRatePct, 5, "none of them reads or writes");
    assert.equal(signIns({ errors: 1, attempts: 20 }).errorRatePct, 5);
  });

  it("of a node that tells of reads and writes alone is theirs, also while its successor's attempts are new", () => {
    const poll = polled();
    poll({});
    assert.equal(poll({ readOps: 25, errors: 20 }).errorRatePct, 80);
    assert.equal(poll({ readOps: 25, errors: 20, attempts: 45 }).errorRatePct, 80);
    assert.equal(poll({ readOps: 50, errors: 20, attempts: 90 }).errorRatePct, 40);
  });

  it("is 100 % of however few attempts when all have failed for a minute, until one goes well", () => {
    const poll = polled();
    poll({ attempts: 100, errors: 0 });
    let failed = 0;
    const fail = (): number | null => {
      failed++;
      return poll({ attempts: 100 + failed, errors: failed }).errorRatePct;
    };
    const idle = (polls: number): (number | null)[] =>
      Array.from({ length: polls }, () => poll({ attempts: 100 + failed, errors: failed }).errorRatePct);
    for (let at = 0; at < 4; at++) assert.equal(fail(), null);
    assert.deepEqual(idle(7), Array(7).fill(null));
    assert.equal(fail(), null, "five, but in less than a minute");
    assert.equal(fail(), 100);
    assert.deepEqual(new Set(idle(60)), new Set([100]), "five minutes in which nothing was asked for");
    assert.deepEqual(idle(1), [null]);
    for (let at = 0; at < 13; at++) fail();
    assert.equal(fail(), 100);
    assert.equal(poll({ attempts: 100 + failed + 1, errors: failed }).errorRatePct, null);
  });

  it("one that went well among few attempts is no run, and neither are four failures or a burst", () => {
    const poll = polled();
    poll({ attempts: 0 });
    for (let at = 1; at <= 13; at++) {
      assert.equal(
        poll({ attempts: at + (at > 3 ? 1 : 0), errors: at > 9 ? 9 : at }).errorRatePct === 100,
        false,
      );
    }
    const four = polled();
    four({ attempts: 0 });
    for (let at = 1; at <= 30; at++)
      assert.equal(four({ attempts: Math.min(at, 4), errors: Math.min(at, 4) }).errorRatePct, null);
    const burst = polled();
    burst({ attempts: 0 });
    for (let at = 1; at <= 30; at++) assert.equal(burst({ attempts: 19, errors: 19 }).errorRatePct, null);
  });

  it("goes on over a restart", () => {
    const poll = polled();
    poll({});
    poll({ writeOps: 30, errors: 30 });
    assert.equal(poll({ writeOps: 30, errors: 0, uptimeSeconds: 3, bootId: "b2" }).errorRatePct, 50);
  });

  it("an hour without answers leaves no operations in the window", () => {
    const counters = new NodeCounters();
    counters.record(nodeSample({ steadyMs: 0 }));
    counters.record(nodeSample({ steadyMs: 3_600_000, writeOps: 1_000, errors: 1_000 }));
    assert.deepEqual(counters.errorWindow(3_600_000), { errors: 0, ops: 0, failingRun: 0 });
  });
});

describe("mean rates of the last 60 s", () => {
  it("are the bytes of the window over its time, and end with it", () => {
    const counters = new NodeCounters();
    for (let seconds = 0; seconds <= 60; seconds += 5) {
      const bytesWritten = seconds < 30 ? 0 : 60e6;
      counters.record(nodeSample({ steadyMs: seconds * 1_000, bytesWritten }));
    }
    assert.equal(counters.windowRates(60_000).writeMbps, 1);
    assert.equal(counters.windowRates(200_000).writeMbps, null);
  });
});

describe("whatever a node says (M-05)", () => {
  const anything = fc.oneof(
    fc.constantFrom(null, Number.NaN, -1, 0, 1e308, Number.POSITIVE_INFINITY, 2 ** 64),
    fc.double(),
    fc.nat(),
  );
  const sample = fc.record({
    bytesWritten: anything,
    bytesRead: anything,
    writeOps: anything,
    readOps: anything,
    errors: anything,
    uptimeSeconds: anything,
    lastRestartUnix: fc.oneof(fc.constantFrom(1, 2, null), anything),
    bootId: fc.constantFrom("a", "b", null),
    stepMs: fc.integer({ min: 0, max: 100_000 }),
  });

  it("rates are null, or finite and not negative; error rates are 0 to 100", () => {
    fc.assert(
      fc.property(fc.array(sample, { maxLength: 40 }), (samples) => {
        const counters = new NodeCounters();
        let steadyMs = 0;
        for (const { stepMs, ...overrides } of samples) {
          steadyMs += stepMs;
          const { errorRatePct, ...rates } = counters.record(nodeSample({ steadyMs, ...overrides }));
          for (const rate of Object.values(rates)) assert.ok(isRate(rate));
          assert.ok(errorRatePct === null || (errorRatePct >= 0 && errorRatePct <= 100));
          for (const rate of Object.values({ ...counters.windowRates(steadyMs) })) assert.ok(isRate(rate));
        }
      }),
    );
  });

  it("what true counters grew by is what their rates add up to, restarts included", () => {
    const step = fc.record({ grown: fc.nat(1e9), restarts: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), (steps) => {
        const poll = polled();
        poll({});
        let counter = 0;
        let bootNumber = 0;
        let total = 0;
        let seen = 0;
        for (const { grown, restarts } of steps) {
          if (restarts) {
            bootNumber++;
            counter = 0;
          }
          counter += grown;
          total += grown;
          const rates = poll({ bytesWritten: counter, bootId: `boot ${bootNumber}`, uptimeSeconds: 5 });
          seen += (rates.writeMbps ?? Number.NaN) * 5 * 1e6;
        }
        assert.ok(Math.abs(seen - total) <= 1e-6 * Math.max(1, total));
      }),
    );
  });
});
