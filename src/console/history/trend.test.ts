// Tests of forecasts: from six hours on, none when flat or falling, unmoved by jumps and noise.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { pace } from "./slope.ts";
import { Trend } from "./trend.ts";
import { TREND_FINE_MS, TREND_MS, TREND_POINTS, TREND_USER_POINTS } from "./trends.ts";

const START_MS = 1_790_000_123_456;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const GB = 1e9;

function diskTrend(): Trend {
  return new Trend(
    [
      { slotMs: TREND_FINE_MS, points: 576 },
      { slotMs: TREND_MS, points: TREND_POINTS },
    ],
    64,
  );
}

/** Records an amount every five minutes and returns the forecast at the end. */
function forecast(
  hours: number,
  bytesAt: (hour: number) => number,
  limit = 1_000 * GB,
  trend = diskTrend(),
): number | undefined {
  for (let minute = 0; minute <= hours * 60; minute += 5) {
    trend.record(START_MS + minute * MINUTE_MS, bytesAt(minute / 60), limit);
  }
  return trend.daysLeft(START_MS + hours * HOUR_MS);
}

describe("forecast of a disk", () => {
  it("is there from six hours on, and not five minutes before", () => {
    const rising = (hour: number): number => 500 * GB + hour * GB;
    assert.equal(forecast(6 - 5 / 60, rising), undefined);
    assert.equal(forecast(6, rising), 20.6);
    assert.equal(
      forecast(0.5, (hour) => hour * 900 * GB),
      undefined,
    );
  });

  it("is the room that is left over the pace, whatever they are", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 6, max: 72 }),
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 1, max: 90 }),
        (hours, mbPerHour, percentFull) => {
          const limit = 10_000 * GB;
          const start = (limit * percentFull) / 100;
          const days = forecast(hours, (hour) => start + hour * mbPerHour * 1e6, limit);
          const left = limit - start - hours * mbPerHour * 1e6;
          const expected = left / (mbPerHour * 1e6) / 24;
          if (expected > 3_650) assert.equal(days, undefined);
          else assert.ok(Math.abs((days ?? Number.NaN) / expected - 1) < 0.01, `${days} is not ${expected}`);
        },
      ),
      { numRuns: 20 },
    );
  });

  it("is none when the amount is flat, falls, or wavers", () => {
    assert.equal(
      forecast(24, () => 900 * GB),
      undefined,
    );
    assert.equal(
      forecast(24, (hour) => 900 * GB - hour * GB),
      undefined,
    );
    assert.equal(
      forecast(24, (hour) => 900 * GB + Math.sin(hour * 7) * GB),
      undefined,
    );
  });

  it("is not moved by one jump, up or down", () => {
    for (const jump of [300 * GB, -300 * GB]) {
      const days = forecast(48, (hour) => 400 * GB + hour * GB + (hour > 40 && hour < 43 ? jump : 0));
      assert.ok(Math.abs((days ?? 0) - 23) < 1, String(days));
    }
  });

  it("is 0 where nothing is left and it goes on rising", () => {
    assert.equal(
      forecast(12, (hour) => 995 * GB + hour * GB),
      0,
    );
  });

  it("is none for what was not heard of for an hour", () => {
    const trend = diskTrend();
    assert.notEqual(
      forecast(12, (hour) => hour * GB, 1_000 * GB, trend),
      undefined,
    );
    assert.equal(trend.daysLeft(START_MS + 13 * HOUR_MS + 1), undefined);
  });

  it("follows the pace of the last week, not that of the months before", () => {
    const trend = new Trend([{ slotMs: TREND_MS, points: TREND_POINTS }], 64);
    for (let hour = 0; hour <= 60 * 24; hour++) {
      const bytes = hour < 52 * 24 ? hour * 0.01 * GB : 12.48 * GB + (hour - 52 * 24) * GB;
      trend.record(START_MS + hour * HOUR_MS, bytes, 444.48 * GB);
    }
    assert.equal(trend.daysLeft(START_MS + 60 * DAY_MS), 10);
  });

  it("goes on over a restart: what was kept counts, and the pause is bridged", () => {
    const before = diskTrend();
    forecast(5, (hour) => 500 * GB + hour * GB, 1_000 * GB, before);
    const after = diskTrend();
    for (const [index, { ring }] of before.tiers.entries()) {
      after.tiers[index]?.ring.restore(ring.takeAll() ?? { firstSlot: 0, values: new Float32Array() });
    }
    const nowMs = START_MS + 8 * HOUR_MS;
    after.record(nowMs, 508 * GB, 1_000 * GB);
    assert.equal(after.daysLeft(nowMs), 20.5);
  });

  it("a clock that goes back a little loses nothing; far back it begins anew", () => {
    const trend = diskTrend();
    forecast(12, (hour) => 500 * GB + hour * GB, 1_000 * GB, trend);
    const kept = trend.tiers[0]?.ring.newestSlot ?? 0;
    trend.record(START_MS + 11 * HOUR_MS, 511 * GB, 1_000 * GB);
    assert.equal(trend.tiers[0]?.ring.newestSlot, kept);
    trend.record(START_MS - 30 * DAY_MS, 511 * GB, 1_000 * GB);
    assert.ok((trend.tiers[0]?.ring.newestSlot ?? kept) < kept);
  });
});

describe("what is kept of a trend", () => {
  it("is bounded: 90 days by the hour of a disk, a week of a user", () => {
    assert.equal(TREND_POINTS * TREND_MS, 90 * DAY_MS);
    assert.equal(TREND_USER_POINTS * TREND_MS, 7 * DAY_MS);
    const trend = new Trend([{ slotMs: TREND_MS, points: 4 }], 64);
    for (let hour = 0; hour < 50; hour++) trend.record(START_MS + hour * HOUR_MS, hour * GB, 100 * GB);
    const ring = trend.tiers[0]?.ring;
    assert.equal((ring?.newestSlot ?? 0) - (ring?.firstSlot ?? 0), 3);
  });
});

describe("pace", () => {
  it("is finite, above zero or none, whatever the points are", () => {
    const steps = fc.array(
      fc.record({ afterMs: fc.integer({ min: 1, max: 2 * DAY_MS }), amount: fc.nat() }),
      {
        maxLength: 200,
      },
    );
    fc.assert(
      fc.property(steps, (points) => {
        let wallMs = START_MS;
        const value = pace(
          points.map(({ afterMs, amount }) => {
            wallMs += afterMs;
            return { wallMs, amount };
          }),
          32,
        );
        assert.ok(value === undefined || (Number.isFinite(value) && value > 0));
      }),
    );
  });
});
