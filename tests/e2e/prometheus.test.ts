// Tests of a node's /metrics/prometheus with Prometheus' own parsers and naming rules (D12).
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ManualClock } from "#base/clock.ts";
import type { MetricsInputs } from "#telemetry/metrics-document.ts";
import { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { PrometheusForm } from "#telemetry/prometheus-form.ts";
import { prometheusText } from "#telemetry/prometheus-text.ts";
import { UserMaps } from "#telemetry/user-maps.ts";

const PYTHON = "/usr/bin/python3";
const SCRIPT = join(fileURLToPath(new URL("..", import.meta.url)), "python", "read_metrics.py");
const skip = hasParser() ? false : "needs python3-prometheus-client";

function hasParser(): boolean {
  return (
    spawnSync(PYTHON, ["-c", "import prometheus_client.openmetrics.parser"], { stdio: "ignore" }).status === 0
  );
}

interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly (readonly [name: string, labels: Record<string, string>, value: string])[];
}

function read(text: string, form: PrometheusForm): Family[] {
  const output = execFileSync(PYTHON, [SCRIPT, form], { input: text, encoding: "utf8", timeout: 30_000 });
  return JSON.parse(output) as Family[];
}

/** Names that would break a text format without escapes. */
const HARD_NAMES = [
  '"quoted"@example.com',
  "back\\slash@example.com",
  "line\nfeed@example.com",
  "ünï@example.com",
];

/** A node before its first recount. */
const NOT_COUNTED: MetricsInputs["care"] = {
  damagedFiles: 0,
  damageFoundTotal: 0,
  scrub: { isRunning: false, pass: undefined, lastEndedAtMs: undefined, lastReadBytes: 0, lastFound: 0 },
  recount: {
    isRunning: false,
    pass: undefined,
    lastEndedAtMs: undefined,
    lastRoots: 0,
    lastRows: 0,
    drift: undefined,
  },
};
const DRIFT = { bytes: 7, counters: 3, directoryBytes: 7, liveBytes: 0, trashBytes: 0, stagingBytes: 0 };

function textOf(form: PrometheusForm, changes: Partial<MetricsInputs> = {}, operations = true): string {
  const node = new NodeTelemetry({ clock: new ManualClock(1_790_000_000_500) });
  if (operations) {
    node.operation("write", 12.5, "done");
    node.operation("write", 7.5, "refused");
    node.bytesWritten(4_000_000);
  }
  const users = new UserMaps((username) => ({
    username,
    liveBytes: 100,
    trashBytes: 20,
    stagingBytes: 3,
    fileCount: 1,
    inodeCount: 2,
    inodeLimit: 10_000_000,
    inodeLimitExplicit: false,
    quotaBytes: 2n ** 64n - 1n,
    quotaExplicit: true,
    lastActiveWallMs: undefined,
  }));
  users.update(HARD_NAMES);
  const metrics = node.document({
    host: {
      diskTotalBytes: 1_000n,
      diskUsedBytes: 250n,
      diskFreeBytes: 650n,
      inodeFree: 12n,
      inodeTotal: 400n,
      cpuTempCelsius: 48.5,
      cpuUsagePercent: 12.34,
      memUsedBytes: 1,
      memTotalBytes: 3,
      loadAvg1m: 0.5,
      loadAvg5m: 0.25,
      bootId: "0b5a1ff6-5f2c-4c42-9d2a-0d0f3f6ae9f1",
    },
    users,
    activeUsers: 1,
    activeConnections: 2,
    chunkCount: 3,
    reserveBytes: 21_474_836_480n,
    version: "1.2.3",
    gitCommit: null,
    certDaysLeft: 30,
    clockSkewMs: -1_500,
    authMock: false,
    storageFailed: false,
    care: { ...NOT_COUNTED, recount: { ...NOT_COUNTED.recount, drift: DRIFT } },
    ...changes,
  });
  return Buffer.concat(prometheusText(metrics, form, users)).toString();
}

for (const form of ["text", "openmetrics"] as const) {
  test(`Prometheus' parser of the form "${form}" reads every value, label and help (D12)`, { skip }, () => {
    const families = new Map(read(textOf(form), form).map((family) => [family.name, family]));
    const samples = new Map<string, string>();
    for (const { samples: found } of families.values()) {
      for (const [name, labels, value] of found) samples.set(name + JSON.stringify(labels), value);
    }
    const value = (name: string, labels: Record<string, string> = {}): number =>
      Number(samples.get(name + JSON.stringify(labels)) ?? Number.NaN);
    assert.equal(value("svc_bytes_written_total"), 4_000_000);
    assert.equal(value("svc_operations_total", { op: "write" }), 2);
    assert.equal(value("svc_refused_operations_total"), 1);
    assert.equal(value("svc_errors_total"), 0);
    assert.equal(value("svc_disk_free_bytes"), 650);
    assert.equal(value("svc_disk_usage_ratio"), 0.2778);
    assert.deepEqual([value("svc_disk_free_inodes"), value("svc_disk_inodes")], [12, 400]);
    assert.equal(value("svc_cpu_temperature_celsius"), 48.5);
    assert.equal(value("svc_clock_skew_seconds"), -1.5);
    assert.equal(value("svc_quota_drift_bytes"), 7);
    assert.equal(value("svc_drift_bytes", { counter: "directory" }), 7);
    assert.equal(value("svc_drift_bytes", { counter: "trash" }), 0);
    assert.equal(value("svc_certificate_left_seconds"), 30 * 86_400);
    assert.equal(value("svc_op_latency_seconds", { op: "write", quantile: "0.99" }), 0.0125);
    assert.equal(value("svc_op_latency_seconds_sum", { op: "write" }), 0.02);
    assert.equal(value("svc_op_latency_seconds_count", { op: "write" }), 2);
    assert.equal(samples.get('svc_op_latency_seconds{"op":"read","quantile":"0.5"}'), "nan");
    assert.equal(value("svc_build_info", { version: "1.2.3", git_commit: "" }), 1);
    for (const user of HARD_NAMES) {
      assert.equal(value("svc_user_used_bytes", { user }), 123, user);
      assert.equal(value("svc_user_quota_bytes", { user }), 2 ** 64, user);
      assert.equal(value("svc_user_inodes", { user }), 2, user);
      assert.equal(value("svc_user_inode_limit", { user }), 10_000_000, user);
    }
    for (const { name, help, type } of families.values()) {
      assert.notEqual(help, "", name);
      assert.notEqual(type, "unknown", name);
    }
  });
}

test("what is not known is left out, and what is guarded is not there without its right (D12, T8)", {
  skip,
}, () => {
  const names = (text: string): string[] => read(text, "text").map(({ name }) => name);
  const bare = names(textOf("text", { certDaysLeft: null, clockSkewMs: null, care: NOT_COUNTED }, false));
  for (const name of [
    "svc_certificate_left_seconds",
    "svc_clock_skew_seconds",
    "svc_quota_drift_bytes",
    "svc_drift_bytes",
  ]) {
    assert.ok(!bare.includes(name), name);
  }
  const node = new NodeTelemetry({ clock: new ManualClock() });
  const nobody = new UserMaps(() => undefined);
  const host = {
    diskTotalBytes: null,
    diskUsedBytes: null,
    diskFreeBytes: null,
    inodeFree: null,
    inodeTotal: null,
    cpuTempCelsius: null,
  };
  const more = {
    cpuUsagePercent: null,
    memUsedBytes: 1,
    memTotalBytes: 2,
    loadAvg1m: null,
    loadAvg5m: null,
    bootId: null,
  };
  const inputs = {
    users: nobody,
    activeUsers: 0,
    activeConnections: 0,
    chunkCount: 0,
    reserveBytes: 0n,
    version: "1",
  };
  const unknown = {
    gitCommit: null,
    certDaysLeft: null,
    clockSkewMs: null,
    authMock: true,
    storageFailed: true,
    care: NOT_COUNTED,
  };
  const document = node.document({ host: { ...host, ...more }, ...inputs, ...unknown });
  const without = names(Buffer.concat(prometheusText(document, "text")).toString());
  assert.ok(without.includes("svc_storage_failed"));
  for (const name of without)
    assert.ok(!/user_|disk_(?:size|used|free|usage)|load|temperature/.test(name), name);
});

/** The rules of `promtool check metrics` (client_golang's promlint) for names and metadata. */
test("names keep the conventions that promtool checks", () => {
  const text = textOf("text");
  const types = new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]),
  );
  const helps = new Map(
    [...text.matchAll(/^# HELP (\S+) (.+)$/gm)].map(([, name = "", help = ""]) => [name, help]),
  );
  assert.ok(types.size > 30);
  assert.deepEqual([...types.keys()], [...helps.keys()]);
  for (const [name, type] of types) {
    assert.match(name, /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/, "snake case without colons");
    assert.equal(
      name.endsWith("_total"),
      type === "counter",
      `${name}: counters, and only they, end in _total`,
    );
    assert.doesNotMatch(name, /_(?:count|sum|bucket)$/, "endings of summaries and histograms");
    assert.doesNotMatch(
      name,
      /(?:^|_)(?:gauge|counter|summary|histogram|metric)(?:_|$)/,
      "no type in a name",
    );
    assert.doesNotMatch(
      name,
      /(?:^|_)(?:ms|msec|us|ns|s|sec|min|mins|hours?|days?|kb|mb|gb|kib|mib|gib|bits|percent|milliseconds|microseconds|minutes|fahrenheit|kelvin)(?:_|$)/,
      "base units, written out",
    );
    assert.match(helps.get(name) ?? "", /^[A-Z0-9].*\.$/, name);
  }
  const names = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const order = names.map((line) => line.split(/[{ ]/, 1)[0]?.replace(/_(?:sum|count)$/, "") ?? "");
  const blocks = order.filter((name, at) => name !== order[at - 1]);
  assert.equal(blocks.length, new Set(blocks).size, "all samples of a family stand together");
  assert.equal(
    new Set(names.map((line) => line.slice(0, line.lastIndexOf(" ")))).size,
    names.length,
    "no sample twice",
  );
});
