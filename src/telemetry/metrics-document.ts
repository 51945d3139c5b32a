// The document of GET /metrics: types and construction (spec 2.7, decisions D12, T8, T17).
import { type Json64, toJson64 } from "#base/json64.ts";
import { WAITS, type Wait } from "#base/wait-times.ts";
import { type EngineFields, type EngineReadings, engineFields } from "./engine-metrics.ts";
import type { UserMaps } from "./user-maps.ts";

/** Latencies of one kind of operation in milliseconds, over the last 1024 of them. */
export interface LatencySummary {
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly samples: number;
  /** Over all operations since the start, not only those of the window. */
  readonly sumMs: number;
}

/** The node's own counters. */
export interface OperationCounts {
  readonly bytesWritten: bigint;
  readonly bytesRead: bigint;
  readonly writeOps: number;
  readonly readOps: number;
  readonly errors: number;
  /** All reads, writes and other calls that may end as errors, each once. */
  readonly attempts: number;
  readonly failedWrites: number;
  readonly failedReads: number;
  readonly refused: number;
  readonly slowCalls: number;
  readonly slowWaits: ReadonlyMap<Wait, number>;
  readonly writeLatency: LatencySummary;
  readonly readLatency: LatencySummary;
}

/** The machine's gauges; null for one that could not be read. See host-gauges.ts. */
export interface HostReadings {
  readonly diskTotalBytes: bigint | null;
  readonly diskUsedBytes: bigint | null;
  readonly diskFreeBytes: bigint | null;
  readonly inodeFree: bigint | null;
  /** 0 for a filesystem that makes inodes on demand. */
  readonly inodeTotal: bigint | null;
  readonly cpuTempCelsius: number | null;
  readonly cpuUsagePercent: number | null;
  readonly memUsedBytes: number;
  readonly memTotalBytes: number;
  readonly loadAvg1m: number | null;
  readonly loadAvg5m: number | null;
  readonly bootId: string | null;
}

/** Damage and drift in the store, and the progress of scrub and recount. */
export interface CareReadings {
  /** Files that are damaged now. */
  readonly damagedFiles: number;
  /** Files that were found damaged since the start. */
  readonly damageFoundTotal: number;
  readonly scrub: {
    readonly isRunning: boolean;
    readonly pass:
      | {
          readonly startedAtMs: number;
          readonly part: string;
          readonly readBytes: number;
          readonly found: number;
        }
      | undefined;
    readonly lastEndedAtMs: number | undefined;
    readonly lastReadBytes: number;
    readonly lastFound: number;
  };
  readonly recount: {
    readonly isRunning: boolean;
    readonly pass:
      | { readonly startedAtMs: number; readonly roots: number; readonly rows: number }
      | undefined;
    readonly lastEndedAtMs: number | undefined;
    readonly lastRoots: number;
    readonly lastRows: number;
    /** The result of counting so far; undefined before anything was counted. */
    readonly drift: DriftReading | undefined;
  };
}

/** Difference between counters and what they count. */
interface DriftReading {
  readonly bytes: number;
  readonly counters: number;
  readonly directoryBytes: number;
  readonly liveBytes: number;
  readonly trashBytes: number;
  readonly stagingBytes: number;
}

/** One damaged file, shown only with the metrics token (decision T8). */
export interface DamagedFileReading {
  readonly username: string;
  readonly path: string;
  readonly trashed: boolean;
  readonly size: number;
}

/** Readings that are shown only with the metrics token (decision T8), without the per-user maps. */
export interface GuardedReadings {
  readonly damaged: readonly DamagedFileReading[];
  /** Grows with every change to the list of security events (D22). */
  readonly securityEventsTotal: number;
}

/** Inputs of the document from other rooms. */
export interface MetricsInputs {
  readonly host: HostReadings;
  readonly users: Pick<UserMaps, "count" | "isTruncated" | "trashBytes" | "stagingBytes">;
  /** Users with a session used in the last 15 minutes (decision D12). */
  readonly activeUsers: number;
  /** Open HTTP/2 sessions (decision D12). */
  readonly activeConnections: number;
  /** Stored chunk files; small files live inside the database and have none. */
  readonly chunkCount: number;
  readonly reserveBytes: bigint;
  readonly version: string;
  /** Commit of this program; null when unknown. */
  readonly gitCommit: string | null;
  /** Days until the certificate ends; null without TLS. */
  readonly certDaysLeft: number | null;
  /** Difference to the MetaServer's clock; null when unknown. */
  readonly clockSkewMs: number | null;
  /** True when the node accepts mock tokens (spec 5.7). */
  readonly authMock: boolean;
  /** True once a flush has failed and the node takes no more writes. */
  readonly storageFailed: boolean;
  readonly care: CareReadings;
  /** Undefined on a node with disks of its own. */
  readonly engine?: EngineReadings | undefined;
}

/** The document without the per-user maps: spec 2.7 and the additions of decision D12. */
export interface NodeMetrics extends EngineFields {
  readonly disk_total_bytes: Json64 | null;
  readonly disk_used_bytes: Json64 | null;
  readonly disk_free_bytes: Json64 | null;
  readonly disk_usage_percent: number | null;
  readonly users_assigned_count: number;
  readonly active_users: number;
  readonly cpu_temp_celsius: number | null;
  readonly cpu_usage_percent: number | null;
  readonly mem_used_bytes: Json64;
  readonly mem_total_bytes: Json64;
  readonly mem_usage_percent: number;
  readonly load_avg_1m: number | null;
  readonly load_avg_5m: number | null;
  readonly uptime_seconds: number;
  readonly last_restart_unix: number;
  readonly chunk_count: number;
  readonly active_connections: number;
  readonly bytes_written_total: Json64;
  readonly bytes_read_total: Json64;
  readonly write_ops_total: number;
  readonly read_ops_total: number;
  readonly errors_total: number;
  /** Reads, writes, and other calls that were not refused; each may end as one error (T4). */
  readonly attempts_total: number;
  readonly failed_writes_total: number;
  readonly failed_reads_total: number;
  /** Operations refused for a reason on the caller's side; they are no errors (T4). */
  readonly refused_total: number;
  /** Calls that took longer than -slow_call_ms, and their waits in milliseconds by kind. */
  readonly slow_calls_total: number;
  readonly slow_call_waits_ms: Readonly<Record<Wait, number>>;
  readonly op_latency_write_ms_p50: number;
  readonly op_latency_write_ms_p95: number;
  readonly op_latency_write_ms_p99: number;
  readonly op_latency_write_samples: number;
  /** Sum of all latencies since the start; divided by the operations it is their mean. */
  readonly op_latency_write_ms_sum: number;
  readonly op_latency_read_ms_p50: number;
  readonly op_latency_read_ms_p95: number;
  readonly op_latency_read_ms_p99: number;
  readonly op_latency_read_samples: number;
  readonly op_latency_read_ms_sum: number;
  readonly version: string;
  readonly git_commit: string | null;
  readonly boot_id: string | null;
  readonly inode_free: Json64 | null;
  /** Inodes of the filesystem, free or not; 0 where it makes them on demand. */
  readonly inode_total: Json64 | null;
  readonly reserve_bytes: Json64;
  readonly trash_bytes: Json64;
  readonly staging_bytes: Json64;
  readonly cert_days_left: number | null;
  readonly clock_skew_ms: number | null;
  /** True when the node accepts mock tokens: the alert `auth_mock:<fsID>` (D11). */
  readonly auth_mock: boolean;
  readonly storage_failed: boolean;
  /** Damaged files that were not replaced since: above 0 raises the alert `corruption:<fsID>` (D11). */
  readonly damaged_file_count: number;
  readonly damage_found_total: number;
  readonly scrub_running: boolean;
  /** "chunks", "files" or "database"; null between passes. */
  readonly scrub_part: string | null;
  readonly scrub_pass_started_unix: number | null;
  readonly scrub_pass_read_bytes: Json64;
  readonly scrub_pass_found: number;
  /** Null before the first pass ends. */
  readonly scrub_last_pass_unix: number | null;
  readonly scrub_last_pass_bytes: Json64;
  readonly scrub_last_pass_found: number;
  /**
   * Bytes counted wrongly; null until a first recount ends or finds some. Raises `quota_drift:<fsID>` (D16).
   */
  readonly quota_drift_bytes: number | null;
  /** Counters of bytes, files and entries that were wrong; null like the bytes. */
  readonly drifted_counters: number | null;
  readonly drift_directory_bytes: number | null;
  readonly drift_live_bytes: number | null;
  readonly drift_trash_bytes: number | null;
  readonly drift_staging_bytes: number | null;
  readonly recount_running: boolean;
  readonly recount_pass_started_unix: number | null;
  readonly recount_pass_roots: number;
  readonly recount_pass_rows: number;
  /** Null before the first pass ends. */
  readonly recount_last_pass_unix: number | null;
  readonly recount_last_pass_roots: number;
  readonly recount_last_pass_rows: number;
  /** True when the node has more users than the per-user maps list; sums cover all of them. */
  readonly users_truncated: boolean;
}

/** Builds the document. startedAtWallMs and uptimeMs are those of this process. */
export function buildMetrics(
  counts: OperationCounts,
  inputs: MetricsInputs,
  life: { startedAtWallMs: number; uptimeMs: number },
): NodeMetrics {
  const { host, users } = inputs;
  return {
    disk_total_bytes: orNull(host.diskTotalBytes),
    disk_used_bytes: orNull(host.diskUsedBytes),
    disk_free_bytes: orNull(host.diskFreeBytes),
    disk_usage_percent: diskUsage(host),
    users_assigned_count: users.count,
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
    version: inputs.version,
    git_commit: inputs.gitCommit,
    boot_id: host.bootId,
    inode_free: orNull(host.inodeFree),
    inode_total: orNull(host.inodeTotal),
    reserve_bytes: toJson64(inputs.reserveBytes),
    trash_bytes: toJson64(users.trashBytes),
    staging_bytes: toJson64(users.stagingBytes),
    cert_days_left: inputs.certDaysLeft,
    clock_skew_ms: inputs.clockSkewMs,
    auth_mock: inputs.authMock,
    storage_failed: inputs.storageFailed,
    ...careFields(inputs.care),
    ...engineFields(inputs.engine),
    users_truncated: users.isTruncated,
  };
}

type CareField = Extract<
  keyof NodeMetrics,
  `scrub_${string}` | "damaged_file_count" | "damage_found_total" | RecountField
>;
type RecountField = Extract<
  keyof NodeMetrics,
  `${"drift" | "drifted" | "recount"}_${string}` | "quota_drift_bytes"
>;

function careFields({
  damagedFiles,
  damageFoundTotal,
  scrub,
  recount,
}: CareReadings): Pick<NodeMetrics, CareField> {
  return {
    damaged_file_count: damagedFiles,
    damage_found_total: damageFoundTotal,
    scrub_running: scrub.isRunning,
    scrub_part: scrub.pass?.part ?? null,
    scrub_pass_started_unix: unixOf(scrub.pass?.startedAtMs),
    scrub_pass_read_bytes: scrub.pass?.readBytes ?? 0,
    scrub_pass_found: scrub.pass?.found ?? 0,
    scrub_last_pass_unix: unixOf(scrub.lastEndedAtMs),
    scrub_last_pass_bytes: scrub.lastReadBytes,
    scrub_last_pass_found: scrub.lastFound,
    ...recountFields(recount),
  };
}

function recountFields(recount: CareReadings["recount"]): Pick<NodeMetrics, RecountField> {
  const { drift, pass } = recount;
  return {
    quota_drift_bytes: drift?.bytes ?? null,
    drifted_counters: drift?.counters ?? null,
    drift_directory_bytes: drift?.directoryBytes ?? null,
    drift_live_bytes: drift?.liveBytes ?? null,
    drift_trash_bytes: drift?.trashBytes ?? null,
    drift_staging_bytes: drift?.stagingBytes ?? null,
    recount_running: recount.isRunning,
    recount_pass_started_unix: unixOf(pass?.startedAtMs),
    recount_pass_roots: pass?.roots ?? 0,
    recount_pass_rows: pass?.rows ?? 0,
    recount_last_pass_unix: unixOf(recount.lastEndedAtMs),
    recount_last_pass_roots: recount.lastRoots,
    recount_last_pass_rows: recount.lastRows,
  };
}

function unixOf(wallMs: number | undefined): number | null {
  return wallMs === undefined ? null : Math.floor(wallMs / 1000);
}

function orNull(bytes: bigint | null): Json64 | null {
  return bytes === null ? null : toJson64(bytes);
}

/** Used share of the space that users can have, as `df` shows it. */
function diskUsage(host: HostReadings): number | null {
  if (host.diskUsedBytes === null || host.diskFreeBytes === null) return null;
  return percent(Number(host.diskUsedBytes), Number(host.diskUsedBytes + host.diskFreeBytes));
}

type OperationField = Extract<
  keyof NodeMetrics,
  | `${"bytes" | "write_ops" | "read_ops" | "errors" | "failed" | "refused" | "slow"}_${string}`
  | `op_latency_${string}`
  | "errors_total"
  | "attempts_total"
>;

function operationFields(counts: OperationCounts): Pick<NodeMetrics, OperationField> {
  return {
    bytes_written_total: toJson64(counts.bytesWritten),
    bytes_read_total: toJson64(counts.bytesRead),
    write_ops_total: counts.writeOps,
    read_ops_total: counts.readOps,
    errors_total: counts.errors,
    attempts_total: counts.attempts,
    failed_writes_total: counts.failedWrites,
    failed_reads_total: counts.failedReads,
    refused_total: counts.refused,
    slow_calls_total: counts.slowCalls,
    slow_call_waits_ms: waitsOf(counts.slowWaits),
    op_latency_write_ms_p50: counts.writeLatency.p50Ms,
    op_latency_write_ms_p95: counts.writeLatency.p95Ms,
    op_latency_write_ms_p99: counts.writeLatency.p99Ms,
    op_latency_write_samples: counts.writeLatency.samples,
    op_latency_write_ms_sum: counts.writeLatency.sumMs,
    op_latency_read_ms_p50: counts.readLatency.p50Ms,
    op_latency_read_ms_p95: counts.readLatency.p95Ms,
    op_latency_read_ms_p99: counts.readLatency.p99Ms,
    op_latency_read_samples: counts.readLatency.samples,
    op_latency_read_ms_sum: counts.readLatency.sumMs,
  };
}

function waitsOf(waits: ReadonlyMap<Wait, number>): Record<Wait, number> {
  return Object.fromEntries(WAITS.map((wait) => [wait, waits.get(wait) ?? 0])) as Record<Wait, number>;
}

/** Share of a whole in percent, 0 to 100, with two decimals; 0 of nothing is 0 (decision D12). */
export function percent(part: number, whole: number): number {
  if (!(whole > 0) || !(part > 0)) return 0;
  return Math.min(100, Math.round((part / whole) * 10_000) / 100);
}
