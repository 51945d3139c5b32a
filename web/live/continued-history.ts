// Continues a node's hour by what a snapshot says of the node.
import { HISTORY_SNAPSHOTS_PER_NODE } from "#base/limits.ts";
import type { HistoryColumn, HistoryReply } from "#wire/webapi/performance.ts";
import type { LiveNode } from "../words/live-node.ts";

/** A snapshot may be older than the hour that was read; by more than this the console's clock went back. */
const LATE_SECONDS = 15;

/** The hour with a point at `ts`, unix seconds. Once a clock went back, points of a time to come go. */
export function continued(
  known: HistoryReply | undefined,
  node: LiveNode,
  ts: number,
): HistoryReply | undefined {
  if (known === undefined) return known;
  const newest = known.points.at(-1)?.[0] ?? 0;
  if (ts <= newest && newest - ts <= LATE_SECONDS) return known;
  const isGap = node.stale || node.status === "offline";
  const point = known.columns.map((column) => (column === "ts" ? ts : isGap ? null : valueOf(node, column)));
  const before = known.points.filter(([at]) => (at ?? 0) < ts);
  return { ...known, to: ts, points: [...before.slice(1 - HISTORY_SNAPSHOTS_PER_NODE), point] };
}

const LATENCY = /^(p50|p95|p99)_(write|read)_ms$/;

function valueOf(node: LiveNode, column: HistoryColumn): number | null {
  const latency = LATENCY.exec(column);
  const field = latency === null ? column : `op_latency_${latency[2]}_ms_${latency[1]}`;
  const value = (node as unknown as Record<string, unknown>)[field];
  return typeof value === "number" ? value : null;
}
