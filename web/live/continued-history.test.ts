// A node's hour goes on with each snapshot, in order, and after a clock that was set.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryReply } from "#wire/webapi/performance.ts";
import type { LiveNode } from "../words/live-node.ts";
import { continued } from "./continued-history.ts";

const NODE = { stale: false, status: "online", write_mbps: 3 } as LiveNode;
const hour = (...times: readonly number[]): HistoryReply =>
  ({ columns: ["ts", "write_mbps"], to: times.at(-1), points: times.map((ts) => [ts, 1]) }) as HistoryReply;
const timesAfter = (ts: number): unknown[] =>
  continued(hour(10_000, 10_005, 10_010), NODE, ts)?.points.map(([at]) => at) ?? [];

test("a snapshot adds its point, and one that is older than what was read none", () => {
  assert.deepEqual(timesAfter(10_015), [10_000, 10_005, 10_010, 10_015]);
  for (const late of [10_010, 10_006, 9_995]) assert.deepEqual(timesAfter(late), [10_000, 10_005, 10_010]);
  assert.deepEqual(continued(hour(1), NODE, 2)?.points.at(-1), [2, 3]);
});

test("once the console's clock has gone back, the hour goes on from there", () => {
  assert.deepEqual(continued(hour(9_000, 9_990, 10_010), NODE, 9_994)?.points, [
    [9_000, 1],
    [9_990, 1],
    [9_994, 3],
  ]);
  assert.deepEqual(timesAfter(6_000), [6_000]);
});
