// Fields of a node's document and their ranges; values outside are no data (spec 2.7, D12, T17, M-05).
import { parseU64 } from "#base/json64.ts";
import { NODE_LABEL_MAX_LENGTH } from "#base/limits.ts";
import type { NodeReading } from "./cluster-state.ts";

/** The fields of a reading that stand for one field of the document. */
export type SingleField = Exclude<
  keyof NodeReading,
  "perUserStorage" | "perUserQuota" | "perUserDetail" | "nearQuota" | "usersWithheld" | "invalidFields"
>;

/** Returns the value of a field; undefined for an invalid one. Null, "unknown", is handled before. */
type Reader<T> = (value: unknown) => T | undefined;

interface Field<T> {
  readonly name: string;
  readonly read: Reader<T>;
  /** True for the fields of spec 2.7, without which a document is incomplete. Older nodes lack the others. */
  readonly isOfSpecification: boolean;
}

type FieldTable = { readonly [K in SingleField]: Field<NonNullable<NodeReading[K]>> };

/** The result of a document's single fields. */
export interface SingleFields {
  readonly values: Readonly<Pick<NodeReading, SingleField>>;
  readonly invalid: readonly string[];
  /** True when at least one field of spec 2.7 has a value; otherwise it is no document of a node. */
  readonly isMetrics: boolean;
}

/** Reads the single fields of a document parsed from JSON, which has no getters or inherited keys. */
export function readSingleFields(document: Readonly<Record<string, unknown>>): SingleFields {
  const values: Record<string, unknown> = {};
  const invalid: string[] = [];
  let isMetrics = false;
  for (const [key, { name, read, isOfSpecification }] of ENTRIES) {
    const value = Object.hasOwn(document, name) ? document[name] : undefined;
    if (value === null) {
      values[key] = null;
      continue;
    }
    const known = value === undefined ? undefined : read(value);
    values[key] = known ?? null;
    if (known !== undefined) isMetrics ||= isOfSpecification;
    else if (value !== undefined || isOfSpecification) invalid.push(name);
  }
  return { values: values as unknown as SingleFields["values"], invalid, isMetrics };
}

/** Reads a count of 64 bits (T17). */
export const count: Reader<bigint> = parseU64;

/** Reads a count that stays below 2^53 on any machine. */
export const smallCount: Reader<number> = (value) =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** Reads a boolean. */
export const flag: Reader<boolean> = (value) => (typeof value === "boolean" ? value : undefined);

function between(min: number, max: number): Reader<number> {
  // Adding zero turns a negative zero into a plain one. NaN and infinities are no JSON, but 1e999 becomes
  // one.
  return (value) => (typeof value === "number" && value >= min && value <= max ? value + 0 : undefined);
}

function text(pattern: RegExp): Reader<string> {
  return (value) => (typeof value === "string" && pattern.test(value) ? value : undefined);
}

const I64_MAX = 2n ** 63n - 1n;

const signedCount: Reader<bigint> = (value) => {
  const isDecimal = typeof value === "string" && /^-?(?:0|[1-9]\d{0,18})$/.test(value);
  if (
    !isDecimal &&
    typeof value !== "bigint" &&
    !(typeof value === "number" && Number.isSafeInteger(value))
  ) {
    return undefined;
  }
  const parsed = BigInt(value);
  return parsed <= I64_MAX && parsed >= -I64_MAX ? parsed : undefined;
};

const percent = between(0, 100);
/** A processor works only within this range. */
const celsius = between(-100, 250);
/** Milliseconds; a long transfer takes hours. */
const latency = between(0, 1e10);
const load = between(0, 1e6);
const label = text(new RegExp(`^[\\u0021-\\u007e]{1,${NODE_LABEL_MAX_LENGTH}}$`));

function spec<T>(name: string, read: Reader<T>): Field<T> {
  return { name, read, isOfSpecification: true };
}

function added<T>(name: string, read: Reader<T>): Field<T> {
  return { name, read, isOfSpecification: false };
}

const FIELDS: FieldTable = {
  diskTotalBytes: spec("disk_total_bytes", count),
  diskUsedBytes: spec("disk_used_bytes", count),
  diskFreeBytes: spec("disk_free_bytes", count),
  diskUsagePercent: spec("disk_usage_percent", percent),
  usersAssignedCount: spec("users_assigned_count", smallCount),
  activeUsers: spec("active_users", smallCount),
  cpuTempCelsius: spec("cpu_temp_celsius", celsius),
  cpuUsagePercent: spec("cpu_usage_percent", percent),
  memUsedBytes: spec("mem_used_bytes", count),
  memTotalBytes: spec("mem_total_bytes", count),
  memUsagePercent: spec("mem_usage_percent", percent),
  loadAvg1m: spec("load_avg_1m", load),
  loadAvg5m: spec("load_avg_5m", load),
  uptimeSeconds: spec("uptime_seconds", between(0, 1e11)),
  lastRestartUnix: spec("last_restart_unix", smallCount),
  chunkCount: spec("chunk_count", count),
  activeConnections: spec("active_connections", smallCount),
  bytesWrittenTotal: spec("bytes_written_total", count),
  bytesReadTotal: spec("bytes_read_total", count),
  writeOpsTotal: spec("write_ops_total", count),
  readOpsTotal: spec("read_ops_total", count),
  errorsTotal: spec("errors_total", count),
  attemptsTotal: added("attempts_total", count),
  failedWritesTotal: spec("failed_writes_total", count),
  failedReadsTotal: spec("failed_reads_total", count),
  refusedTotal: added("refused_total", count),
  opLatencyWriteMsP50: spec("op_latency_write_ms_p50", latency),
  opLatencyWriteMsP95: spec("op_latency_write_ms_p95", latency),
  opLatencyWriteMsP99: spec("op_latency_write_ms_p99", latency),
  opLatencyWriteSamples: added("op_latency_write_samples", smallCount),
  opLatencyReadMsP50: spec("op_latency_read_ms_p50", latency),
  opLatencyReadMsP95: spec("op_latency_read_ms_p95", latency),
  opLatencyReadMsP99: spec("op_latency_read_ms_p99", latency),
  opLatencyReadSamples: added("op_latency_read_samples", smallCount),
  version: added("version", label),
  gitCommit: added("git_commit", text(/^[0-9a-f]{7,64}$/)),
  bootId: added("boot_id", text(/^[0-9A-Za-z-]{1,64}$/)),
  inodeFree: added("inode_free", count),
  inodeTotal: added("inode_total", count),
  reserveBytes: added("reserve_bytes", count),
  trashBytes: added("trash_bytes", count),
  stagingBytes: added("staging_bytes", count),
  quotaDriftBytes: added("quota_drift_bytes", signedCount),
  driftedCounters: added("drifted_counters", smallCount),
  certDaysLeft: added("cert_days_left", between(-1e6, 1e6)),
  clockSkewMs: added("clock_skew_ms", between(-1e15, 1e15)),
  authMock: added("auth_mock", flag),
  storageFailed: added("storage_failed", flag),
  damagedFileCount: added("damaged_file_count", smallCount),
  damageFoundTotal: added("damage_found_total", smallCount),
  securityEventsTotal: added("security_events_total", smallCount),
  usersTruncated: added("users_truncated", flag),
};

const ENTRIES = Object.entries(FIELDS) as readonly [SingleField, Field<unknown>][];
