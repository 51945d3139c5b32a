// The answer of GET /api/performance: rates of nodes and cluster over a minute (spec 2.8, decision D9).
import type { History } from "#console/history/history.ts";
import { errorRatePct } from "#console/history/node-counters.ts";
import type { PerformanceReply } from "#wire/webapi/performance.ts";
import type { ClusterState, NodeState } from "./cluster-state.ts";
import { isOnline, toldStatus } from "./node-status.ts";
import { latencyFields } from "./node-view.ts";

type NodePerformance = PerformanceReply["nodes"][number];

/** Rates are sums over answering nodes; the cluster's error rate is that of all their operations. */
export function performanceReply(
  nodes: ReturnType<ClusterState["nodes"]>,
  history: Pick<History, "windowRates" | "errorWindow">,
  nowMs: number,
): PerformanceReply {
  const sum = { write: 0, read: 0, writeOps: 0, readOps: 0, errors: 0, ops: 0, failingRun: 0 };
  const rows = nodes.map((node) => {
    const row = nodePerformance(node, history);
    if (!isOnline(node)) return row;
    const { errors, ops } = history.errorWindow(node.id);
    sum.write += row.write_mbps ?? 0;
    sum.read += row.read_mbps ?? 0;
    sum.writeOps += row.write_iops ?? 0;
    sum.readOps += row.read_iops ?? 0;
    sum.errors += errors;
    sum.ops += ops;
    return row;
  });
  return {
    generated_at: Math.floor(nowMs / 1_000),
    cluster_write_mbps: thousandths(sum.write),
    cluster_read_mbps: thousandths(sum.read),
    cluster_write_iops: thousandths(sum.writeOps),
    cluster_read_iops: thousandths(sum.readOps),
    cluster_error_rate_pct: thousandths(errorRatePct(sum) ?? 0),
    window_seconds: 60,
    nodes: rows,
  };
}

/** For a node that does not answer only name and state, because rates of half an hour ago mislead. */
function nodePerformance(node: NodeState, history: Pick<History, "windowRates">): NodePerformance {
  const isAnswering = isOnline(node);
  const rates = isAnswering ? history.windowRates(node.id) : undefined;
  const reading = isAnswering ? node.lastGood : undefined;
  return {
    node_id: node.id,
    node_name: node.name,
    ...toldStatus(node.status),
    write_mbps: orNull(rates?.writeMbps),
    read_mbps: orNull(rates?.readMbps),
    write_iops: orNull(rates?.writeIops),
    read_iops: orNull(rates?.readIops),
    error_rate_pct: orNull(rates?.errorRatePct),
    ...latencyFields(reading),
    active_connections: reading?.activeConnections ?? null,
  };
}

function orNull(rate: number | null | undefined): number | null {
  return rate === null || rate === undefined ? null : thousandths(rate);
}

function thousandths(value: number): number {
  const result = Math.round(value * 1_000) / 1_000;
  return Number.isFinite(result) ? result : value;
}
