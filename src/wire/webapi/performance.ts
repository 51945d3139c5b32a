// Rates and latencies: GET /api/performance, GET /api/history/{fsID} and CSV columns (spec 2.8, D9).
import { z } from "zod";
import { NODE_STATUSES } from "./cluster.ts";

/** Columns of a history point, in order (decision D9). MB are 10^6 bytes. */
export const HISTORY_COLUMNS = [
  "ts",
  "write_mbps",
  "read_mbps",
  "write_iops",
  "read_iops",
  "error_rate_pct",
  "disk_usage_percent",
  "cpu_temp_celsius",
  "cpu_usage_percent",
  "mem_usage_percent",
  "active_connections",
  "p50_write_ms",
  "p95_write_ms",
  "p99_write_ms",
  "p50_read_ms",
  "p95_read_ms",
  "p99_read_ms",
] as const;

/** A column of a history point. */
export type HistoryColumn = (typeof HISTORY_COLUMNS)[number];

/** GET /api/history/{fsID}: a row of nulls after its time is a gap. */
export const historyReply = z.object({
  node_id: z.string(),
  interval_seconds: z.number(),
  from: z.int(),
  to: z.int(),
  columns: z.array(z.enum(HISTORY_COLUMNS)),
  points: z.array(z.array(z.number().nullable())),
  /** For more than the last hour: the first kept time at this interval; null without rows. */
  kept_from: z.int().nullable().optional(),
});

/** The history of a node or of the cluster. */
export type HistoryReply = z.infer<typeof historyReply>;

const rate = z.number().nullable();

/** One node in GET /api/performance. */
export const nodePerformance = z.object({
  node_id: z.string(),
  node_name: z.string(),
  status: z.enum(NODE_STATUSES),
  /** True for a node that has not answered yet, as in cluster.ts. */
  unknown: z.boolean().optional(),
  write_mbps: rate,
  read_mbps: rate,
  write_iops: rate,
  read_iops: rate,
  error_rate_pct: rate,
  op_latency_write_ms_p50: rate,
  op_latency_write_ms_p95: rate,
  op_latency_write_ms_p99: rate,
  op_latency_read_ms_p50: rate,
  op_latency_read_ms_p95: rate,
  op_latency_read_ms_p99: rate,
  active_connections: rate,
});

/** GET /api/performance. */
export const performanceReply = z.object({
  generated_at: z.int(),
  cluster_write_mbps: z.number(),
  cluster_read_mbps: z.number(),
  cluster_write_iops: z.number(),
  cluster_read_iops: z.number(),
  cluster_error_rate_pct: z.number(),
  window_seconds: z.literal(60),
  nodes: z.array(nodePerformance),
});

/** The reply of GET /api/performance. */
export type PerformanceReply = z.infer<typeof performanceReply>;

const unixSeconds = z.string().regex(/^\d{1,12}$/, "is no count of unix seconds");

/** Query of GET /api/history/{fsID}: unix seconds, and a step of a multiple of 5 seconds up to an hour. */
export const historyQuery = z
  .object({
    from: unixSeconds.optional(),
    to: unixSeconds.optional(),
    step: z
      .string()
      .regex(/^\d{1,4}$/, "is no count of seconds")
      .refine((text) => Number(text) >= 5 && Number(text) <= 3_600 && Number(text) % 5 === 0, {
        message: "must be a multiple of 5 from 5 to 3600",
      })
      .optional(),
  })
  .strict()
  .refine(({ from, to }) => from === undefined || to === undefined || Number(from) <= Number(to), {
    path: ["to"],
    message: "must not be before from",
  });

/** Query of GET /api/performance/export: the last hour, or the kept rows between two moments. */
export const exportQuery = z
  .object({
    node_id: z.string().min(1).max(63).optional(),
    from: unixSeconds.optional(),
    to: unixSeconds.optional(),
  })
  .strict()
  .refine(({ from, to }) => from === undefined || to === undefined || Number(from) <= Number(to), {
    path: ["to"],
    message: "must not be before from",
  });
