// GET /api/cluster and the live stream's metrics snapshot, for operators and for visitors (D4, spec 5.8.4).
import { z } from "zod";
import { count64 } from "./count64.ts";
import { nodeMaintenance } from "./maintenance.ts";

/** States of a node (spec 3.2). */
export const NODE_STATUSES = ["online", "warning", "degraded", "critical", "offline"] as const;

/** One of the states of a node. */
export type NodeStatus = (typeof NODE_STATUSES)[number];

const percent = z.number().min(0).max(100);
const gauge = z.number().nullable();

/** A node for visitors: its hardware and traffic. A field without a valid report is null. */
export const publicNode = z.object({
  id: z.string(),
  name: z.string(),
  status: z.enum(NODE_STATUSES),
  /**
   * True until the node's first answer to this console, for 30 s at most. `status` is "offline" then, so that
   * a client that knows only its five values does not rely on the node.
   */
  unknown: z.boolean().optional(),
  /** True while the last poll had no valid answer; the figures are then those of last_seen. */
  stale: z.boolean(),
  /** Unix seconds of the last good poll; 0 before the first. */
  last_seen: z.int(),
  version: z.string(),
  maintenance_until: z.int().optional(),
  write_mbps: gauge,
  read_mbps: gauge,
  write_iops: gauge,
  read_iops: gauge,
  error_rate_pct: percent.nullable(),
  /** Days until the disk reaches the reserve; absent where unknown and where the disk is not filling. */
  disk_full_in_days: z.number().optional(),
  /** True when the disk's trend is known; absent from older consoles. */
  disk_forecast_known: z.boolean().optional(),
  disk_total_bytes: count64.nullable(),
  disk_used_bytes: count64.nullable(),
  disk_free_bytes: count64.nullable(),
  disk_usage_percent: percent.nullable(),
  cpu_temp_celsius: gauge,
  cpu_usage_percent: percent.nullable(),
  mem_used_bytes: count64.nullable(),
  mem_total_bytes: count64.nullable(),
  mem_usage_percent: percent.nullable(),
  load_avg_1m: gauge,
  load_avg_5m: gauge,
  uptime_seconds: z.number().nullable(),
  last_restart_unix: z.number().nullable(),
  chunk_count: count64.nullable(),
  active_connections: z.number().nullable(),
  bytes_written_total: count64.nullable(),
  bytes_read_total: count64.nullable(),
  write_ops_total: count64.nullable(),
  read_ops_total: count64.nullable(),
  errors_total: count64.nullable(),
  failed_writes_total: count64.nullable(),
  failed_reads_total: count64.nullable(),
  op_latency_write_ms_p50: gauge,
  op_latency_write_ms_p95: gauge,
  op_latency_write_ms_p99: gauge,
  op_latency_read_ms_p50: gauge,
  op_latency_read_ms_p95: gauge,
  op_latency_read_ms_p99: gauge,
  git_commit: z.string().nullable(),
  inode_free: count64.nullable(),
  /** 0 for a filesystem that makes inodes on demand. */
  inode_total: count64.nullable(),
  reserve_bytes: count64.nullable(),
  cert_days_left: z.number().nullable(),
  clock_skew_ms: z.number().nullable(),
  storage_failed: z.boolean().nullable(),
});

/** The same with fields for operators: addresses, and everything that depends on users. */
export const operatorNode = publicNode.extend({
  address: z.string(),
  /** Id of the action that locks the node. */
  locked_by: z.string().optional(),
  /** The node's maintenance. */
  maintenance: nodeMaintenance.optional(),
  /** True for a node that is taken out of service. */
  drained: z.literal(true).optional(),
  boot_id: z.string().nullable(),
  users_assigned_count: z.number().nullable(),
  active_users: z.number().nullable(),
  trash_bytes: count64.nullable(),
  staging_bytes: count64.nullable(),
  quota_drift_bytes: count64.nullable(),
  damaged_file_count: z.number().nullable(),
  per_user_storage: z.record(z.string(), count64),
  per_user_quota: z.record(z.string(), count64),
  /** Why the last poll failed; absent after a good one. */
  poll_error: z.string().optional(),
});

/** One user in the cluster's reply. */
export const clusterUser = z.object({
  used_bytes: count64,
  trash_bytes: count64,
  quota_limit: count64,
  quota_source: z.enum(["explicit", "default", "pending"]),
  usage_percent: z.number(),
  node_id: z.string(),
});

/** Sums over all nodes. */
export const clusterTotals = z.object({
  nodes_total: z.int(),
  /** Nodes that are not offline, without unknown ones. */
  nodes_online: z.int(),
  /** Nodes that have not answered yet. */
  nodes_unknown: z.int(),
  disk_total_bytes: count64,
  disk_used_bytes: count64,
});

const frame = {
  generated_at: z.int(),
  poll_interval_seconds: z.literal(5),
  cluster: clusterTotals,
} as const;

/** The cluster for visitors: no field depends on users (spec 5.8.4). */
export const publicCluster = z.object({
  ...frame,
  redacted: z.literal(true),
  nodes: z.array(publicNode),
  users: z.object({}).strict(),
  total_users: z.literal(0),
});

/** The cluster for operators. */
export const operatorCluster = z.object({
  ...frame,
  redacted: z.literal(false),
  nodes: z.array(operatorNode),
  users: z.record(z.string(), clusterUser),
  total_users: z.int(),
});

/** A node as visitors see it. */
export type PublicNode = z.infer<typeof publicNode>;
/** A node as operators see it. */
export type OperatorNode = z.infer<typeof operatorNode>;
/** The cluster as visitors see it. */
export type PublicCluster = z.infer<typeof publicCluster>;
/** The cluster as operators see it. */
export type OperatorCluster = z.infer<typeof operatorCluster>;
