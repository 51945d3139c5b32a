// The /metrics document in Prometheus' forms: conventional names, base units, grouped by family (D12).

import { WAITS } from "#base/wait-times.ts";
import { engineFamilies } from "./engine-metrics.ts";
import type { NodeMetrics } from "./metrics-document.ts";
import {
  familyHeader,
  familyText,
  type MetricFamily,
  type PrometheusForm,
  type Sample,
} from "./prometheus-form.ts";
import type { UserMaps } from "./user-maps.ts";

/**
 * The document as Prometheus text, in immutable pieces; without `maps` it names no single user (decision T8).
 */
export function prometheusText(
  metrics: NodeMetrics,
  form: PrometheusForm,
  maps?: Pick<UserMaps, "samples">,
): readonly Buffer[] {
  const families = [
    ...hostFamilies(metrics),
    ...workFamilies(metrics),
    ...careFamilies(metrics),
    ...engineFamilies(metrics),
  ];
  const pieces: Buffer[] = [Buffer.from(families.map((family) => familyText(family, form)).join(""))];
  if (maps !== undefined) {
    for (const family of USER_FAMILIES) {
      const samples = maps.samples(family.name);
      if (samples.length > 0) pieces.push(Buffer.from(familyHeader(family, form)), ...samples);
    }
  }
  if (form === "openmetrics") pieces.push(Buffer.from("# EOF\n"));
  return pieces;
}

const USER_FAMILIES = [
  {
    name: "svc_user_used_bytes",
    type: "gauge",
    help: "Bytes that a user occupies, trash and staging included.",
  },
  { name: "svc_user_quota_bytes", type: "gauge", help: "Quota in force for a user." },
  { name: "svc_user_inodes", type: "gauge", help: "Files and folders of a user, trash included." },
  { name: "svc_user_inode_limit", type: "gauge", help: "Files and folders that a user may have." },
] as const;

function hostFamilies(m: NodeMetrics): MetricFamily[] {
  return [
    {
      name: "svc_build",
      type: "info",
      help: "Version of the program and the commit it was made from.",
      samples: [
        { suffix: "_info", labels: { version: m.version, git_commit: m.git_commit ?? "" }, value: 1 },
      ],
    },
    {
      name: "svc_host",
      type: "info",
      help: "The run of the machine's system that this process lives in.",
      samples: m.boot_id === null ? [] : [{ suffix: "_info", labels: { boot_id: m.boot_id }, value: 1 }],
    },
    gauge("svc_start_time_seconds", "When this process started, in seconds since 1970.", m.last_restart_unix),
    gauge("svc_uptime_seconds", "How long this process has run.", m.uptime_seconds),
    gauge("svc_disk_size_bytes", "Size of the filesystem that holds the data.", m.disk_total_bytes),
    gauge("svc_disk_used_bytes", "Bytes of it that are taken.", m.disk_used_bytes),
    gauge("svc_disk_free_bytes", "Bytes of it that this process may still use.", m.disk_free_bytes),
    gauge("svc_disk_usage_ratio", "Used part of what users can have, 0 to 1.", ratio(m.disk_usage_percent)),
    gauge("svc_disk_free_inodes", "Inodes that the filesystem has left.", m.inode_free),
    gauge(
      "svc_disk_inodes",
      "Inodes of the filesystem, free or not; 0 where it has no limit.",
      m.inode_total,
    ),
    gauge("svc_disk_reserve_bytes", "Free space that no write may consume.", m.reserve_bytes),
    gauge("svc_cpu_temperature_celsius", "Temperature of the processor.", m.cpu_temp_celsius),
    gauge(
      "svc_cpu_usage_ratio",
      "Busy part of all processors since the scrape before, 0 to 1.",
      ratio(m.cpu_usage_percent),
    ),
    gauge("svc_memory_size_bytes", "Memory of the machine.", m.mem_total_bytes),
    gauge("svc_memory_used_bytes", "Memory in use; caches count as free.", m.mem_used_bytes),
    gauge("svc_memory_usage_ratio", "Used part of the memory, 0 to 1.", ratio(m.mem_usage_percent)),
    gauge("svc_load1", "Load average of one minute.", m.load_avg_1m),
    gauge("svc_load5", "Load average of five minutes.", m.load_avg_5m),
  ];
}

function workFamilies(m: NodeMetrics): MetricFamily[] {
  return [
    counter("svc_bytes_written", "Bytes of content received, counted at each chunk.", m.bytes_written_total),
    counter("svc_bytes_read", "Bytes of content sent, counted at each chunk.", m.bytes_read_total),
    {
      name: "svc_operations",
      type: "counter",
      help: "Operations that have ended.",
      samples: byKind(m.write_ops_total, m.read_ops_total),
    },
    {
      name: "svc_failed_operations",
      type: "counter",
      help: "Operations that this node failed at.",
      samples: byKind(m.failed_writes_total, m.failed_reads_total),
    },
    counter("svc_errors", "Failures of this node, in operations and beside them.", m.errors_total),
    counter(
      "svc_attempts",
      "What may end as one of these failures: operations, and calls that are none, such as sign-ins, unless they were refused.",
      m.attempts_total,
    ),
    counter(
      "svc_refused_operations",
      "Operations that were refused for a reason of the caller's, such as a full quota: no errors.",
      m.refused_total,
    ),
    counter("svc_slow_calls", "Calls that took longer than -slow_call_ms.", m.slow_calls_total),
    {
      name: "svc_slow_call_wait_seconds",
      type: "counter",
      help: "What they have waited for.",
      samples: WAITS.map((wait) => ({
        labels: { for: wait },
        suffix: "_total",
        value: m.slow_call_waits_ms[wait] / 1_000,
      })),
    },
    {
      name: "svc_op_latency_seconds",
      type: "summary",
      help: "Time from start to end of an operation; quantiles over the last 1024 of its kind.",
      samples: [
        ...latency("write", m.write_ops_total, m.op_latency_write_ms_sum, m.op_latency_write_samples, [
          m.op_latency_write_ms_p50,
          m.op_latency_write_ms_p95,
          m.op_latency_write_ms_p99,
        ]),
        ...latency("read", m.read_ops_total, m.op_latency_read_ms_sum, m.op_latency_read_samples, [
          m.op_latency_read_ms_p50,
          m.op_latency_read_ms_p95,
          m.op_latency_read_ms_p99,
        ]),
      ],
    },
    gauge("svc_active_connections", "Open connections of clients.", m.active_connections),
    gauge("svc_active_users", "Users who did something in the last 15 minutes.", m.active_users),
    gauge("svc_users_assigned", "Users whose root is on this node.", m.users_assigned_count),
  ];
}

function damageFamilies(m: NodeMetrics): MetricFamily[] {
  return [
    gauge(
      "svc_damaged_files",
      "Files whose stored bytes were found wrong, until they are overwritten or deleted.",
      m.damaged_file_count,
    ),
    counter("svc_damage_found", "Files found damaged since the start.", m.damage_found_total),
    gauge(
      "svc_scrub_running",
      "1 while everything stored is being read and checked.",
      m.scrub_running ? 1 : 0,
    ),
    gauge("svc_scrub_pass_read_bytes", "Bytes read in the pass under way.", m.scrub_pass_read_bytes),
    gauge(
      "svc_scrub_last_pass_timestamp_seconds",
      "When everything stored was last read and checked to the end.",
      m.scrub_last_pass_unix,
    ),
    gauge("svc_scrub_last_pass_found", "Damaged chunks and files met by that pass.", m.scrub_last_pass_found),
  ];
}

function driftFamilies(m: NodeMetrics): MetricFamily[] {
  const off: readonly [string, Sample["value"] | null][] = [
    ["directory", m.drift_directory_bytes],
    ["live", m.drift_live_bytes],
    ["trash", m.drift_trash_bytes],
    ["staging", m.drift_staging_bytes],
  ];
  return [
    gauge(
      "svc_drifted_counters",
      "Counters that were found wrong when all was counted anew.",
      m.drifted_counters,
    ),
    {
      name: "svc_drift_bytes",
      type: "gauge",
      help: "Bytes by which counters of one kind were found to differ from what they count.",
      samples: off.flatMap(([counter, value]) => (value === null ? [] : [{ labels: { counter }, value }])),
    },
    gauge(
      "svc_recount_running",
      "1 while everything that has a counter is counted anew.",
      m.recount_running ? 1 : 0,
    ),
    gauge("svc_recount_pass_roots", "Roots counted in the pass under way.", m.recount_pass_roots),
    gauge(
      "svc_recount_last_pass_timestamp_seconds",
      "When everything that has a counter was last counted to the end.",
      m.recount_last_pass_unix,
    ),
    gauge("svc_recount_last_pass_roots", "Roots counted by that pass.", m.recount_last_pass_roots),
  ];
}

function careFamilies(m: NodeMetrics): MetricFamily[] {
  return [
    gauge("svc_chunks", "Stored chunk files; small files have none.", m.chunk_count),
    gauge("svc_trash_bytes", "Bytes in the trash of all users.", m.trash_bytes),
    gauge("svc_staging_bytes", "Bytes of uploads that are not finished.", m.staging_bytes),
    gauge(
      "svc_quota_drift_bytes",
      "Bytes that counters were found to have wrong when all was counted anew: always a bug.",
      m.quota_drift_bytes,
    ),
    ...driftFamilies(m),
    gauge("svc_auth_mock", "1 when mock tokens are accepted: anybody can be anybody.", m.auth_mock ? 1 : 0),
    gauge(
      "svc_storage_failed",
      "1 once a flush has failed and no more writes are taken.",
      m.storage_failed ? 1 : 0,
    ),
    ...damageFamilies(m),
    gauge(
      "svc_certificate_left_seconds",
      "Time until the node's certificate ends, in whole days.",
      m.cert_days_left === null ? null : m.cert_days_left * 86_400,
    ),
    gauge(
      "svc_clock_skew_seconds",
      "The MetaServer's clock minus this node's.",
      m.clock_skew_ms === null ? null : m.clock_skew_ms / 1000,
    ),
  ];
}

function gauge(name: string, help: string, value: Sample["value"] | null): MetricFamily {
  return { name, type: "gauge", help, samples: value === null ? [] : [{ value }] };
}

function counter(name: string, help: string, value: Sample["value"]): MetricFamily {
  return { name, type: "counter", help, samples: [{ suffix: "_total", value }] };
}

function byKind(writes: number, reads: number): Sample[] {
  return [
    { suffix: "_total", labels: { op: "write" }, value: writes },
    { suffix: "_total", labels: { op: "read" }, value: reads },
  ];
}

/** By convention a quantile of no operations is NaN, not 0. */
function latency(
  op: string,
  count: number,
  sumMs: number,
  samples: number,
  [p50, p95, p99]: readonly [number, number, number],
): Sample[] {
  const quantile = (name: string, ms: number): Sample => ({
    labels: { op, quantile: name },
    value: samples === 0 ? "NaN" : ms / 1000,
  });
  return [
    quantile("0.5", p50),
    quantile("0.95", p95),
    quantile("0.99", p99),
    { suffix: "_sum", labels: { op }, value: sumMs / 1000 },
    { suffix: "_count", labels: { op }, value: count },
  ];
}

function ratio(percent: number | null): number | null {
  return percent === null ? null : Math.round(percent * 100) / 10_000;
}
