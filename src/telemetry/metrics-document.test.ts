// The /metrics document: every field of the specification, its number forms, and what the guarded form leaves out.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { parse64 } from "#base/json64.ts";
import {
  type MetricsInputs,
  metricsJson,
  percent,
  type UserReadings,
  withoutUsers,
} from "./metrics-document.ts";
import { NodeTelemetry } from "./node-telemetry.ts";

const ALICE: UserReadings = {
  username: "alice@example.com",
  liveBytes: 100,
  trashBytes: 20,
  stagingBytes: 3n,
  fileCount: 7,
  quotaBytes: 2n ** 64n - 1n,
  quotaExplicit: true,
  lastActiveWallMs: 1_790_000_000_999,
};
const BOB: UserReadings = {
  ...ALICE,
  username: "__proto__@example.com",
  liveBytes: Number.MAX_SAFE_INTEGER,
  trashBytes: 1,
  stagingBytes: 0,
  quotaBytes: 17_179_869_184n,
  quotaExplicit: false,
  lastActiveWallMs: undefined,
};
const INPUTS: MetricsInputs = {
  host: {
    diskTotalBytes: 1_000n,
    diskUsedBytes: 250n,
    diskFreeBytes: 650n,
    inodeFree: 12n,
    cpuTempCelsius: null,
    cpuUsagePercent: 12.34,
    memUsedBytes: 1,
    memTotalBytes: 3,
    loadAvg1m: 0.5,
    loadAvg5m: 0.25,
    bootId: "b",
  },
  users: [ALICE, BOB],
  activeUsers: 1,
  activeConnections: 2,
  chunkCount: 3,
  reserveBytes: 21_474_836_480n,
  quotaDriftBytes: -5,
  version: "1.2.3",
};

function telemetry(): { clock: ManualClock; node: NodeTelemetry } {
  const clock = new ManualClock(1_790_000_000_500);
  return { clock, node: new NodeTelemetry({ clock }) };
}

test("every field that the specification's section 2.7 names is there (spec 2.7)", () => {
  const specification = readFileSync(new URL("../../docs/specification.md", import.meta.url), "utf8");
  const section = specification.slice(specification.indexOf("### 2.7"), specification.indexOf("### 2.8"));
  const names = [...section.matchAll(/`([a-z0-9_]+)`/g)].map(([, name]) => name ?? "");
  assert.ok(names.length > 30);
  const document = telemetry().node.document(INPUTS);
  for (const name of names.filter((word) => word !== "quota_limit")) assert.ok(name in document, name);
});

test("counters add up at once, failures count as errors, and latencies are kept apart (spec 4.6.4)", () => {
  const { clock, node } = telemetry();
  node.bytesWritten(4_000_000);
  node.bytesWritten(1);
  node.bytesRead(5);
  assert.equal(node.document(INPUTS).bytes_written_total, 4_000_001);
  node.operation("write", 10, false);
  node.operation("write", 30, true);
  node.operation("read", 2, true);
  node.error();
  clock.jumpWall(-86_400_000);
  clock.advance(61_999);
  const document = node.document(INPUTS);
  assert.deepEqual(
    [
      document.write_ops_total,
      document.read_ops_total,
      document.errors_total,
      document.failed_writes_total,
      document.failed_reads_total,
    ],
    [2, 1, 3, 1, 1],
  );
  assert.deepEqual(
    [
      document.op_latency_write_ms_p50,
      document.op_latency_write_ms_p99,
      document.op_latency_read_ms_p50,
      document.op_latency_read_samples,
    ],
    [10, 30, 2, 1],
  );
  assert.deepEqual([document.uptime_seconds, document.last_restart_unix], [61, 1_790_000_000]);
});

test("byte counts above 2^53 - 1 are decimal strings, and an unknown temperature is null (T17, D12)", () => {
  const document = telemetry().node.document(INPUTS);
  const back = parse64(metricsJson(document)) as typeof document;
  assert.equal(back.per_user_quota["alice@example.com"], "18446744073709551615");
  assert.equal(back.per_user_storage["__proto__@example.com"], "9007199254740992");
  assert.equal(back.per_user_storage["alice@example.com"], 123);
  assert.equal(back.quota_drift_bytes, -5);
  assert.equal(back.cpu_temp_celsius, null);
  assert.deepEqual(back.per_user_detail["alice@example.com"], {
    live_bytes: 100,
    trash_bytes: 20,
    staging_bytes: 3,
    file_count: 7,
    last_active_unix: 1_790_000_000,
    quota_explicit: true,
  });
  assert.equal(back.per_user_detail["__proto__@example.com"]?.last_active_unix, null);
  assert.deepEqual([back.trash_bytes, back.staging_bytes, back.users_assigned_count], [21, 3, 2]);
});

test("the guarded form names no user (T8)", () => {
  const text = metricsJson(withoutUsers(telemetry().node.document(INPUTS)));
  assert.ok(!text.includes("example.com") && !text.includes("per_user"));
  assert.ok(text.includes('"disk_free_bytes":650'));
});

test("percent is what df shows: used of what users can have, two decimals, 0 to 100 (D12)", () => {
  const document = telemetry().node.document(INPUTS);
  assert.equal(document.disk_usage_percent, 27.78); // 250 of 250 + 650: the rest is root's
  assert.equal(document.mem_usage_percent, 33.33);
  assert.deepEqual([percent(0, 0), percent(5, 4), percent(-1, 4), percent(Number.NaN, 4)], [0, 100, 0, 0]);
});
