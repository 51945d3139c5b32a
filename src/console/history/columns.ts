// The columns of the last hour: content, precision, and aggregation over nodes and moments (decision D9).
import type { HistoryColumn } from "#wire/webapi/performance.ts";

/** How rows of several nodes become one. */
type AcrossNodes = "sum" | "max" | "mean" | "mean_by_ops" | "mean_by_disk";

/** How rows of several moments become one. */
type AcrossTime = "mean" | "max" | "mean_by_ops";

/** A column of a ring. */
interface RingColumn {
  readonly name: Exclude<HistoryColumn, "ts"> | "ops";
  /** Decimals that are kept, so that files stay short and every value reads back as written. */
  readonly decimals: number;
  readonly acrossNodes: AcrossNodes;
  readonly aggregatedRows: AcrossTime;
}

/**
 * The columns in order: those of the answers, then `ops`, the operations of the last 60 s, which weigh error
 * rates. For percentiles the cluster shows the worst node's, because they cannot be averaged, and for
 * temperatures the hottest.
 */
export const RING_COLUMNS: readonly RingColumn[] = [
  { name: "write_mbps", decimals: 3, acrossNodes: "sum", aggregatedRows: "mean" },
  { name: "read_mbps", decimals: 3, acrossNodes: "sum", aggregatedRows: "mean" },
  { name: "write_iops", decimals: 2, acrossNodes: "sum", aggregatedRows: "mean" },
  { name: "read_iops", decimals: 2, acrossNodes: "sum", aggregatedRows: "mean" },
  { name: "error_rate_pct", decimals: 2, acrossNodes: "mean_by_ops", aggregatedRows: "mean_by_ops" },
  { name: "disk_usage_percent", decimals: 2, acrossNodes: "mean_by_disk", aggregatedRows: "mean" },
  { name: "cpu_temp_celsius", decimals: 1, acrossNodes: "max", aggregatedRows: "mean" },
  { name: "cpu_usage_percent", decimals: 2, acrossNodes: "mean", aggregatedRows: "mean" },
  { name: "mem_usage_percent", decimals: 2, acrossNodes: "mean", aggregatedRows: "mean" },
  { name: "active_connections", decimals: 1, acrossNodes: "sum", aggregatedRows: "mean" },
  { name: "p50_write_ms", decimals: 3, acrossNodes: "max", aggregatedRows: "max" },
  { name: "p95_write_ms", decimals: 3, acrossNodes: "max", aggregatedRows: "max" },
  { name: "p99_write_ms", decimals: 3, acrossNodes: "max", aggregatedRows: "max" },
  { name: "p50_read_ms", decimals: 3, acrossNodes: "max", aggregatedRows: "max" },
  { name: "p95_read_ms", decimals: 3, acrossNodes: "max", aggregatedRows: "max" },
  { name: "p99_read_ms", decimals: 3, acrossNodes: "max", aggregatedRows: "max" },
  { name: "ops", decimals: 0, acrossNodes: "sum", aggregatedRows: "mean" },
];

/** Columns that answers show: all but the last. */
export const SHOWN_COLUMNS: number = RING_COLUMNS.length - 1;

/** Index of the weight of error rates. */
export const OPS_COLUMN: number = RING_COLUMNS.findIndex(({ name }) => name === "ops");

/** Rounds to this many decimals; values that are not finite stay as they are. */
export function rounded(value: number, decimals: number): number {
  const factor = SCALES[decimals] ?? 1;
  const scaled = Math.round(value * factor) / factor;
  // The product of the largest values overflows, and they have no decimals to round.
  return Number.isFinite(scaled) ? scaled : value;
}

const SCALES = [1, 10, 100, 1_000] as const;
