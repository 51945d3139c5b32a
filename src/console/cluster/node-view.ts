// One node as visitors and operators see it; the public form is built field by field (W-09, D4).
import { toJson64 } from "#base/json64.ts";
import type { NodeRates } from "#console/history/node-sample.ts";
import type { OperatorNode, PublicNode } from "#wire/webapi/cluster.ts";
import type { NodeReading, NodeState } from "./cluster-state.ts";
import { toldStatus } from "./node-status.ts";

/** What a view shows of a node beside its state. */
export interface NodeFigures {
  /** Undefined before the first answer. */
  readonly rates: NodeRates | undefined;
  readonly diskFullInDays: number | undefined;
  /** True when the data suffices to tell whether the disk fills. */
  readonly isDiskForecastKnown: boolean;
}

/** The fields for operators only, without the two maps of users. */
export type OperatorPart = Omit<OperatorNode, keyof PublicNode | "per_user_storage" | "per_user_quota">;

/** A node as visitors see it; nothing in it depends on users (spec 5.8.4). */
export function publicNodeOf(node: NodeState, { rates, ...disk }: NodeFigures): PublicNode {
  const reading = node.lastGood;
  return {
    id: node.id,
    name: node.name,
    ...toldStatus(node.status),
    stale: node.stale,
    last_seen: Math.floor(node.lastGoodWallMs / 1_000),
    version: reading?.version ?? node.softwareVersion,
    ...(node.maintenanceUntilWallMs === undefined
      ? {}
      : { maintenance_until: Math.ceil(node.maintenanceUntilWallMs / 1_000) }),
    write_mbps: rates?.writeMbps ?? null,
    read_mbps: rates?.readMbps ?? null,
    write_iops: rates?.writeIops ?? null,
    read_iops: rates?.readIops ?? null,
    error_rate_pct: rates?.errorRatePct ?? null,
    ...(disk.diskFullInDays === undefined ? {} : { disk_full_in_days: disk.diskFullInDays }),
    disk_forecast_known: disk.isDiskForecastKnown,
    ...machineFields(reading),
    ...operationFields(reading),
    git_commit: reading?.gitCommit ?? null,
    inode_free: json(reading?.inodeFree),
    inode_total: json(reading?.inodeTotal),
    reserve_bytes: json(reading?.reserveBytes),
    cert_days_left: reading?.certDaysLeft ?? null,
    clock_skew_ms: reading?.clockSkewMs ?? null,
    storage_failed: reading?.storageFailed ?? null,
  };
}

/** The additional fields for operators. */
export function operatorPartOf(node: NodeState): OperatorPart {
  const reading = node.lastGood;
  const problem = node.pollError ?? (reading?.usersWithheld === true ? USERS_WITHHELD : undefined);
  return {
    address: node.address,
    ...(node.lockedBy === undefined ? {} : { locked_by: node.lockedBy }),
    ...(node.maintenance === undefined ? {} : { maintenance: node.maintenance }),
    ...(node.drained === true ? { drained: true } : {}),
    boot_id: reading?.bootId ?? null,
    users_assigned_count: reading?.usersAssignedCount ?? null,
    active_users: reading?.activeUsers ?? null,
    trash_bytes: json(reading?.trashBytes),
    staging_bytes: json(reading?.stagingBytes),
    quota_drift_bytes: json(reading?.quotaDriftBytes),
    damaged_file_count: reading?.damagedFileCount ?? null,
    ...(problem === undefined ? {} : { poll_error: problem }),
  };
}

const USERS_WITHHELD = "the node tells nothing of its users: it has another SVC_METRICS_TOKEN";

type MachineField = Extract<
  keyof PublicNode,
  | `disk_${"total" | "used" | "free"}_bytes`
  | "disk_usage_percent"
  | `${"cpu" | "mem" | "load"}_${string}`
  | "uptime_seconds"
  | "last_restart_unix"
  | "chunk_count"
  | "active_connections"
>;

function machineFields(reading: NodeReading | undefined): Pick<PublicNode, MachineField> {
  return {
    disk_total_bytes: json(reading?.diskTotalBytes),
    disk_used_bytes: json(reading?.diskUsedBytes),
    disk_free_bytes: json(reading?.diskFreeBytes),
    disk_usage_percent: reading?.diskUsagePercent ?? null,
    cpu_temp_celsius: reading?.cpuTempCelsius ?? null,
    cpu_usage_percent: reading?.cpuUsagePercent ?? null,
    mem_used_bytes: json(reading?.memUsedBytes),
    mem_total_bytes: json(reading?.memTotalBytes),
    mem_usage_percent: reading?.memUsagePercent ?? null,
    load_avg_1m: reading?.loadAvg1m ?? null,
    load_avg_5m: reading?.loadAvg5m ?? null,
    uptime_seconds: reading?.uptimeSeconds ?? null,
    last_restart_unix: reading?.lastRestartUnix ?? null,
    chunk_count: json(reading?.chunkCount),
    active_connections: reading?.activeConnections ?? null,
  };
}

type OperationField = Extract<
  keyof PublicNode,
  `${"bytes" | "write_ops" | "read_ops" | "errors" | "failed"}_${string}` | `op_latency_${string}`
>;

function operationFields(reading: NodeReading | undefined): Pick<PublicNode, OperationField> {
  return {
    bytes_written_total: json(reading?.bytesWrittenTotal),
    bytes_read_total: json(reading?.bytesReadTotal),
    write_ops_total: json(reading?.writeOpsTotal),
    read_ops_total: json(reading?.readOpsTotal),
    errors_total: json(reading?.errorsTotal),
    failed_writes_total: json(reading?.failedWritesTotal),
    failed_reads_total: json(reading?.failedReadsTotal),
    ...latencyFields(reading),
  };
}

type LatencyField = Extract<keyof PublicNode, `op_latency_${string}`>;

/** Percentiles of a node's last operations; null where unknown. */
export function latencyFields(reading: NodeReading | undefined): Pick<PublicNode, LatencyField> {
  return {
    op_latency_write_ms_p50: reading?.opLatencyWriteMsP50 ?? null,
    op_latency_write_ms_p95: reading?.opLatencyWriteMsP95 ?? null,
    op_latency_write_ms_p99: reading?.opLatencyWriteMsP99 ?? null,
    op_latency_read_ms_p50: reading?.opLatencyReadMsP50 ?? null,
    op_latency_read_ms_p95: reading?.opLatencyReadMsP95 ?? null,
    op_latency_read_ms_p99: reading?.opLatencyReadMsP99 ?? null,
  };
}

function json(count: bigint | null | undefined): number | string | null {
  return count === null || count === undefined ? null : toJson64(count);
}
