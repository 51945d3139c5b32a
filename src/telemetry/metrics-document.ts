// The document of GET /metrics: its types, how it is put together and how it becomes JSON (spec 2.7, decisions D12, T8, T17).
import { toJson64 } from "#base/json64.ts";

/** A byte count in JSON: a number up to 2^53 - 1, else a decimal string (decision T17). */
export type Json64 = number | string;

/** Latencies of one kind of operation in milliseconds, over the last 1024 of them. */
export interface LatencySummary {
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly samples: number;
}

/** What the node's own counters say. */
export interface OperationCounts {
  readonly bytesWritten: bigint;
  readonly bytesRead: bigint;
  readonly writeOps: number;
  readonly readOps: number;
  readonly errors: number;
  readonly failedWrites: number;
  readonly failedReads: number;
  readonly writeLatency: LatencySummary;
  readonly readLatency: LatencySummary;
}

/** What the machine's gauges say; see host-gauges.ts. */
export interface HostReadings {
  readonly diskTotalBytes: bigint;
  readonly diskUsedBytes: bigint;
  readonly diskFreeBytes: bigint;
  readonly inodeFree: bigint;
  readonly cpuTempCelsius: number | null;
  readonly cpuUsagePercent: number;
  readonly memUsedBytes: number;
  readonly memTotalBytes: number;
  readonly loadAvg1m: number;
  readonly loadAvg5m: number;
  readonly bootId: string | null;
}

/** One user's root on this node. */
export interface UserReadings {
  readonly username: string;
  readonly liveBytes: number | bigint;
  readonly trashBytes: number | bigint;
  readonly stagingBytes: number | bigint;
  readonly fileCount: number;
  readonly quotaBytes: bigint;
  readonly quotaExplicit: boolean;
  readonly lastActiveWallMs: number | undefined;
}

/** Everything that the document needs from outside this room. */
export interface MetricsInputs {
  readonly host: HostReadings;
  readonly users: Iterable<UserReadings>;
  /** Users with a session used in the last 15 minutes (decision D12). */
  readonly activeUsers: number;
  /** Open HTTP/2 sessions (decision D12). */
  readonly activeConnections: number;
  /** Stored chunk files and files inside the database. */
  readonly chunkCount: number;
  readonly reserveBytes: bigint;
  readonly quotaDriftBytes: bigint | number;
  readonly version: string;
  readonly gitCommit?: string | null;
  /** Days until the certificate ends; null without TLS. */
  readonly certDaysLeft?: number | null;
  /** Difference to the MetaServer's clock; null when unknown. */
  readonly clockSkewMs?: number | null;
  /** True once a flush has failed and the node takes no more writes. */
  readonly storageFailed?: boolean;
}

/** The maps that are guarded when SVC_METRICS_TOKEN is set (decision T8). */
export interface PerUserMaps {
  readonly per_user_storage: Readonly<Record<string, Json64>>;
  readonly per_user_quota: Readonly<Record<string, Json64>>;
  readonly per_user_detail: Readonly<Record<string, PerUserDetail>>;
}

/** One user in `per_user_detail` (decision D12). */
export interface PerUserDetail {
  readonly live_bytes: Json64;
  readonly trash_bytes: Json64;
  readonly staging_bytes: Json64;
  readonly file_count: number;
  readonly last_active_unix: number | null;
  readonly quota_explicit: boolean;
}

/** The document without the per-user maps: spec 2.7 and the additions of decision D12. */
export interface NodeMetrics {
  readonly disk_total_bytes: Json64;
  readonly disk_used_bytes: Json64;
  readonly disk_free_bytes: Json64;
  readonly disk_usage_percent: number;
  readonly users_assigned_count: number;
  readonly active_users: number;
  readonly cpu_temp_celsius: number | null;
  readonly cpu_usage_percent: number;
  readonly mem_used_bytes: Json64;
  readonly mem_total_bytes: Json64;
  readonly mem_usage_percent: number;
  readonly load_avg_1m: number;
  readonly load_avg_5m: number;
  readonly uptime_seconds: number;
  readonly last_restart_unix: number;
  readonly chunk_count: number;
  readonly active_connections: number;
  readonly bytes_written_total: Json64;
  readonly bytes_read_total: Json64;
  readonly write_ops_total: number;
  readonly read_ops_total: number;
  readonly errors_total: number;
  readonly failed_writes_total: number;
  readonly failed_reads_total: number;
  readonly op_latency_write_ms_p50: number;
  readonly op_latency_write_ms_p95: number;
  readonly op_latency_write_ms_p99: number;
  readonly op_latency_write_samples: number;
  readonly op_latency_read_ms_p50: number;
  readonly op_latency_read_ms_p95: number;
  readonly op_latency_read_ms_p99: number;
  readonly op_latency_read_samples: number;
  readonly version: string;
  readonly git_commit: string | null;
  readonly boot_id: string | null;
  readonly inode_free: Json64;
  readonly reserve_bytes: Json64;
  readonly trash_bytes: Json64;
  readonly staging_bytes: Json64;
  readonly quota_drift_bytes: Json64;
  readonly cert_days_left: number | null;
  readonly clock_skew_ms: number | null;
  readonly storage_failed: boolean;
}

/** The whole document (spec 2.7). */
export type FileserverMetrics = NodeMetrics & PerUserMaps;

/** Puts the document together. startedAtWallMs and uptimeMs are those of this process. */
export function buildMetrics(
  counts: OperationCounts,
  inputs: MetricsInputs,
  life: { startedAtWallMs: number; uptimeMs: number },
): FileserverMetrics {
  const { host } = inputs;
  // Null prototypes: a user may not be called __proto__, but a map need not rely on it.
  const storage = Object.create(null) as Record<string, Json64>;
  const quota = Object.create(null) as Record<string, Json64>;
  const detail = Object.create(null) as Record<string, PerUserDetail>;
  let users = 0;
  let trashBytes = 0n;
  let stagingBytes = 0n;
  for (const user of inputs.users) {
    users++;
    trashBytes += BigInt(user.trashBytes);
    stagingBytes += BigInt(user.stagingBytes);
    storage[user.username] = sum(user.liveBytes, user.trashBytes, user.stagingBytes);
    quota[user.username] = toJson64(user.quotaBytes);
    detail[user.username] = {
      live_bytes: json64(user.liveBytes),
      trash_bytes: json64(user.trashBytes),
      staging_bytes: json64(user.stagingBytes),
      file_count: user.fileCount,
      last_active_unix: user.lastActiveWallMs === undefined ? null : Math.floor(user.lastActiveWallMs / 1000),
      quota_explicit: user.quotaExplicit,
    };
  }
  return {
    disk_total_bytes: toJson64(host.diskTotalBytes),
    disk_used_bytes: toJson64(host.diskUsedBytes),
    disk_free_bytes: toJson64(host.diskFreeBytes),
    disk_usage_percent: percent(Number(host.diskUsedBytes), Number(host.diskUsedBytes + host.diskFreeBytes)),
    per_user_storage: storage,
    per_user_quota: quota,
    users_assigned_count: users,
    active_users: inputs.activeUsers,
    cpu_temp_celsius: host.cpuTempCelsius,
    cpu_usage_percent: host.cpuUsagePercent,
    mem_used_bytes: host.memUsedBytes,
    mem_total_bytes: host.memTotalBytes,
    mem_usage_percent: percent(host.memUsedBytes, host.memTotalBytes),
    load_avg_1m: host.loadAvg1m,
    load_avg_5m: host.loadAvg5m,
    uptime_seconds: Math.max(0, Math.floor(life.uptimeMs / 1000)),
    last_restart_unix: Math.floor(life.startedAtWallMs / 1000),
    chunk_count: inputs.chunkCount,
    active_connections: inputs.activeConnections,
    ...operationFields(counts),
    per_user_detail: detail,
    version: inputs.version,
    git_commit: inputs.gitCommit ?? null,
    boot_id: host.bootId,
    inode_free: toJson64(host.inodeFree),
    reserve_bytes: toJson64(inputs.reserveBytes),
    trash_bytes: toJson64(trashBytes),
    staging_bytes: toJson64(stagingBytes),
    quota_drift_bytes: toJson64(BigInt(inputs.quotaDriftBytes)),
    cert_days_left: inputs.certDaysLeft ?? null,
    clock_skew_ms: inputs.clockSkewMs ?? null,
    storage_failed: inputs.storageFailed ?? false,
  };
}

/** The same without what tells of users one by one (decision T8). */
export function withoutUsers(metrics: FileserverMetrics): NodeMetrics {
  const { per_user_storage: _storage, per_user_quota: _quota, per_user_detail: _detail, ...rest } = metrics;
  return rest;
}

/** The document as JSON. Every count is a Json64 already, so nothing needs a replacer, which would be slow with many users. */
export function metricsJson(metrics: FileserverMetrics | NodeMetrics): string {
  return JSON.stringify(metrics);
}

function json64(bytes: number | bigint): Json64 {
  return typeof bytes === "number" ? bytes : toJson64(bytes);
}

/** What a user occupies; plain numbers stay plain where that is exact. */
function sum(live: number | bigint, trash: number | bigint, staging: number | bigint): Json64 {
  if (typeof live === "number" && typeof trash === "number" && typeof staging === "number") {
    const total = live + trash + staging;
    if (Number.isSafeInteger(total)) return total;
  }
  return toJson64(BigInt(live) + BigInt(trash) + BigInt(staging));
}

type OperationField = Extract<
  keyof NodeMetrics,
  | `${"bytes" | "write_ops" | "read_ops" | "errors" | "failed"}_${string}`
  | `op_latency_${string}`
  | "errors_total"
>;

function operationFields(counts: OperationCounts): Pick<NodeMetrics, OperationField> {
  return {
    bytes_written_total: toJson64(counts.bytesWritten),
    bytes_read_total: toJson64(counts.bytesRead),
    write_ops_total: counts.writeOps,
    read_ops_total: counts.readOps,
    errors_total: counts.errors,
    failed_writes_total: counts.failedWrites,
    failed_reads_total: counts.failedReads,
    op_latency_write_ms_p50: counts.writeLatency.p50Ms,
    op_latency_write_ms_p95: counts.writeLatency.p95Ms,
    op_latency_write_ms_p99: counts.writeLatency.p99Ms,
    op_latency_write_samples: counts.writeLatency.samples,
    op_latency_read_ms_p50: counts.readLatency.p50Ms,
    op_latency_read_ms_p95: counts.readLatency.p95Ms,
    op_latency_read_ms_p99: counts.readLatency.p99Ms,
    op_latency_read_samples: counts.readLatency.samples,
  };
}

/** Share of a whole in percent, 0 to 100, with two decimals; 0 of nothing is 0 (decision D12). */
export function percent(part: number, whole: number): number {
  if (!(whole > 0) || !(part > 0)) return 0;
  return Math.min(100, Math.round((part / whole) * 10_000) / 100);
}
