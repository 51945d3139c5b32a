// Tests of the points of a range: gaps as rows of nulls, steps against a plain model (decision D9).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { HISTORY_COLUMNS, historyReply as replySchema } from "#wire/webapi/performance.ts";
import { OPS_COLUMN, RING_COLUMNS, rounded, SHOWN_COLUMNS } from "./columns.ts";
import { historyReply } from "./history-reply.ts";
import type { RowRange } from "./recent-hour.ts";

const SLOT = 358_000_001;
const NOW = SLOT * 5 + 4;

function rangeOf(rows: readonly (readonly (number | null)[] | undefined)[]): RowRange {
  return {
    firstSlot: SLOT,
    lastSlot: SLOT + rows.length - 1,
    at: (column, slot) => rows[slot - SLOT]?.[column] ?? Number.NaN,
  };
}

const fullRow = (value: number): number[] => RING_COLUMNS.map(() => value);

describe("points of history", () => {
  it("have the time first, then the columns of D9 in their order", () => {
    const row = RING_COLUMNS.map((_, column) => column + 1);
    const reply = historyReply("a", rangeOf([row]), {}, NOW);
    assert.deepEqual(reply.columns, [...HISTORY_COLUMNS]);
    assert.deepEqual(reply.points, [[SLOT * 5, ...row.slice(0, SHOWN_COLUMNS)]]);
    assert.deepEqual(
      HISTORY_COLUMNS.slice(1),
      RING_COLUMNS.slice(0, SHOWN_COLUMNS).map(({ name }) => name),
    );
    assert.equal(reply.interval_seconds, 5);
    assert.deepEqual([reply.from, reply.to], [SLOT * 5, SLOT * 5]);
    replySchema.parse(reply);
  });

  it("a gap is a row of nulls behind its time, and nothing is put between its neighbours", () => {
    const reply = historyReply("a", rangeOf([fullRow(10), undefined, fullRow(20)]), {}, NOW);
    assert.deepEqual(reply.points[1], [(SLOT + 1) * 5, ...Array.from({ length: SHOWN_COLUMNS }, () => null)]);
    replySchema.parse(reply);
  });

  it("from and to take in what lies on them, and what lies outside is left out", () => {
    const rows = Array.from({ length: 10 }, (_, index) => fullRow(index));
    const times = (query: object): (number | null | undefined)[] =>
      historyReply("a", rangeOf(rows), query, NOW).points.map(([ts]) => ts);
    const at = (index: number): number => (SLOT + index) * 5;
    assert.deepEqual(times({ from: at(2), to: at(3) }), [at(2), at(3)]);
    assert.deepEqual(times({ from: at(2) + 1, to: at(4) - 1 }), [at(3)]);
    assert.equal(times({ from: 0, to: 9_999_999_999 }).length, 10);
    assert.deepEqual(times({ from: at(10) }), []);
    assert.deepEqual(times({ to: at(0) - 1 }), []);
  });

  it("of a node without a row there are none, and the times are those that were asked for", () => {
    const reply = historyReply("a", undefined, { from: 5, to: 10 }, NOW);
    assert.deepEqual([reply.points, reply.from, reply.to], [[], 5, 10]);
    assert.deepEqual(historyReply("a", undefined, {}, NOW).to, NOW);
  });

  it("steps are means of rates and gauges, maxima of percentiles, error rates by operations (D9)", () => {
    const figure = fc.option(fc.nat(1_000), { nil: null, freq: 4 });
    const row = fc.option(
      fc.array(figure, { minLength: RING_COLUMNS.length, maxLength: RING_COLUMNS.length }),
      { nil: undefined, freq: 4 },
    );
    const rows = fc.array(row, { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(rows, fc.integer({ min: 1, max: 12 }), (rows, slotsPerPoint) => {
        const step = slotsPerPoint * 5;
        const { points } = historyReply("a", rangeOf(rows), { step }, NOW);
        const buckets = Map.groupBy(rows.keys(), (index) => Math.floor(((SLOT + index) * 5) / step) * step);
        assert.deepEqual(
          points.map(([ts]) => ts),
          [...buckets.keys()],
        );
        for (const [bucket, [, indexes]] of [...buckets].entries()) {
          for (let column = 0; column < SHOWN_COLUMNS; column++) {
            const known = indexes.flatMap((index) => {
              const value = rows[index]?.[column] ?? null;
              return value === null ? [] : [{ value, ops: rows[index]?.[OPS_COLUMN] ?? 0 }];
            });
            const got = points[bucket]?.[column + 1] ?? null;
            assert.equal(got, expected(known, column, indexes.length));
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});

function expected(
  known: readonly { value: number; ops: number }[],
  column: number,
  size: number,
): number | null {
  const { aggregatedRows, decimals } = RING_COLUMNS[column] as (typeof RING_COLUMNS)[number];
  if (known.length === 0) return null;
  if (size === 1) return known[0]?.value ?? null;
  if (aggregatedRows === "max") return Math.max(...known.map(({ value }) => value));
  const weights = known.map(({ ops }) => (aggregatedRows === "mean" ? 1 : ops));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return null;
  const sum = known.reduce((all, { value }, index) => all + value * (weights[index] ?? 0), 0);
  return rounded(sum / total, decimals);
}
