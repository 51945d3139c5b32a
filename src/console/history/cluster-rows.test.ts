// Tests of the cluster's rows against a plain model: sums, weighted means, the worst node (decision D9).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ClusterRows, type NodeRows } from "./cluster-rows.ts";
import { OPS_COLUMN, RING_COLUMNS, rounded } from "./columns.ts";
import { SlotRing } from "./slot-ring.ts";

const SLOT = 358_000_000;
const indexOf = (name: string): number => RING_COLUMNS.findIndex((column) => column.name === name);

function node(rows: readonly (readonly (number | null)[] | undefined)[], diskBytes?: number): NodeRows {
  const ring = new SlotRing(RING_COLUMNS.length, 720);
  rows.forEach((row, index) => {
    if (row !== undefined)
      ring.put(
        SLOT + index,
        row.map((value) => value ?? Number.NaN),
      );
  });
  return { ring, diskBytes };
}

/** The expected values of D9, column by column and slot by slot. */
function expected(nodes: readonly NodeRows[], column: number, slot: number): number {
  const known = nodes
    .map(({ ring, diskBytes }) => ({
      value: ring.at(column, slot),
      ops: ring.at(OPS_COLUMN, slot),
      diskBytes,
    }))
    .filter(({ value }) => !Number.isNaN(value));
  const mean = (weights: readonly number[]): number => {
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return known.reduce((sum, { value }, index) => sum + value * (weights[index] ?? 0), 0) / total;
  };
  const values = known.map(({ value }) => value);
  if (values.length === 0) return Number.NaN;
  switch (RING_COLUMNS[column]?.acrossNodes) {
    case "sum":
      return values.reduce((sum, value) => sum + value, 0);
    case "max":
      return Math.max(...values);
    case "mean_by_ops":
      return mean(known.map(({ ops }) => (ops > 0 ? ops : 0)));
    case "mean_by_disk":
      if (known.some(({ diskBytes }) => diskBytes === undefined)) return mean(values.map(() => 1));
      return mean(known.map(({ diskBytes }) => diskBytes ?? 0));
    default:
      return mean(values.map(() => 1));
  }
}

describe("rows of the cluster", () => {
  it("are what the rule makes of the nodes' rows, in any order of looks and changes", async () => {
    const figure = fc.option(fc.nat(1_000), { nil: null, freq: 4 });
    const row = fc.option(
      fc.array(figure, { minLength: RING_COLUMNS.length, maxLength: RING_COLUMNS.length }),
      { nil: undefined, freq: 4 },
    );
    const oneNode = fc.record({
      rows: fc.array(row, { maxLength: 6 }),
      diskBytes: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(oneNode, { maxLength: 4 }), async (drawn) => {
        const nodes = drawn.map(({ rows, diskBytes }) => node(rows, diskBytes));
        const cluster = new ClusterRows(() => nodes);
        await cluster.prepare(SLOT, SLOT + 3);
        nodes.push(node([[1, 2, 3], undefined, [4, 5, 6]], 2));
        cluster.invalidate(SLOT, SLOT + 2);
        await Promise.all([cluster.prepare(SLOT, SLOT + 5), cluster.prepare(SLOT + 2, SLOT + 4)]);
        for (let slot = SLOT; slot <= SLOT + 5; slot++) {
          for (const [column, { decimals }] of RING_COLUMNS.entries()) {
            const want = rounded(expected(nodes, column, slot), decimals);
            const got = cluster.at(column, slot);
            assert.ok(
              Math.abs(got - want) < 1e-6 || (Number.isNaN(got) && Number.isNaN(want)),
              `${column}: ${got} is not ${want}`,
            );
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it("error rates weigh by operations: 50 % of 20 and 0 % of 180 are 5 %", async () => {
    const errors = indexOf("error_rate_pct");
    const row = (pct: number, ops: number): number[] =>
      RING_COLUMNS.map((_, column) => (column === errors ? pct : column === OPS_COLUMN ? ops : 0));
    const cluster = new ClusterRows(() => [node([row(50, 20)]), node([row(0, 180)])]);
    await cluster.prepare(SLOT, SLOT);
    assert.equal(cluster.at(errors, SLOT), 5);
    assert.equal(cluster.at(OPS_COLUMN, SLOT), 200);
  });

  it("a row that changes while the cluster is worked out is worked out again", async () => {
    const nodes = [node([[1]]), node([[2]])];
    const cluster = new ClusterRows(() => nodes);
    const look = cluster.prepare(SLOT, SLOT + 719);
    await Promise.resolve();
    nodes[0]?.ring.put(SLOT, [10]);
    cluster.invalidate(SLOT, SLOT);
    await look;
    await cluster.prepare(SLOT, SLOT);
    assert.equal(cluster.at(0, SLOT), 12);
  });
});
