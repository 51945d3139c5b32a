// The /metrics document: all fields of the specification, number forms, and fields that only a token shows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { ManualClock } from "#base/clock.ts";
import { type Json64, parse64 } from "#base/json64.ts";
import { METRICS_USERS_LISTED_MAX } from "#base/limits.ts";
import { type MetricsInputs, type NodeMetrics, percent } from "./metrics-document.ts";
import { metricsJson } from "./metrics-json.ts";
import { NodeTelemetry } from "./node-telemetry.ts";
import { USER_MAPS, UserMaps, type UserReadings } from "./user-maps.ts";

const ALICE: UserReadings = {
  username: "alice@example.com",
  liveBytes: 100,
  trashBytes: 20,
  stagingBytes: 3n,
  fileCount: 7,
  inodeCount: 9,
  inodeLimit: 10_000_000,
  inodeLimitExplicit: false,
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
const PEOPLE = new Map([ALICE, BOB].map((user) => [user.username, user]));
const USERS = new UserMaps((username) => PEOPLE.get(username));
USERS.update(PEOPLE.keys());
const INPUTS: MetricsInputs = {
  host: {
    diskTotalBytes: 1_000n,
    diskUsedBytes: 250n,
    diskFreeBytes: 650n,
    inodeFree: 12n,
    inodeTotal: 400n,
    cpuTempCelsius: null,
    cpuUsagePercent: 12.34,
    memUsedBytes: 1,
    memTotalBytes: 3,
    loadAvg1m: 0.5,
    loadAvg5m: 0.25,
    bootId: "b",
  },
  users: USERS,
  activeUsers: 1,
  activeConnections: 2,
  chunkCount: 3,
  reserveBytes: 21_474_836_480n,
  version: "1.2.3",
  gitCommit: null,
  certDaysLeft: null,
  clockSkewMs: null,
  authMock: false,
  storageFailed: false,
  care: {
    damagedFiles: 2,
    damageFoundTotal: 3,
    scrub: {
      isRunning: true,
      pass: { startedAtMs: 1_790_000_000_999, part: "chunks", readBytes: 5, found: 1 },
      lastEndedAtMs: undefined,
      lastReadBytes: 0,
      lastFound: 0,
    },
    recount: {
      isRunning: true,
      pass: { startedAtMs: 1_790_000_001_999, roots: 7, rows: 8 },
      lastEndedAtMs: 1_790_000_000_999,
      lastRoots: 9,
      lastRows: 10,
      drift: {
        bytes: 6,
        counters: 5,
        directoryBytes: 1,
        liveBytes: 2,
        trashBytes: 3,
        stagingBytes: 4,
      },
    },
  },
};

/** One user in `per_user_detail` (decision D12). */
interface PerUserDetail {
  readonly live_bytes: Json64;
  readonly trash_bytes: Json64;
  readonly staging_bytes: Json64;
  readonly file_count: number;
  readonly inode_count: number;
  readonly inode_limit: number;
  readonly inode_limit_explicit: boolean;
  readonly last_active_unix: number | null;
  readonly quota_explicit: boolean;
}

type Document = NodeMetrics &
  Record<"per_user_storage" | "per_user_quota", Record<string, unknown>> & {
    readonly per_user_detail: Record<string, PerUserDetail>;
  };

function parsed(metrics: NodeMetrics, users?: UserMaps): Document {
  return parse64(Buffer.concat(metricsJson(metrics, users)).toString()) as Document;
}

function telemetry(): { clock: ManualClock; node: NodeTelemetry } {
  const clock = new ManualClock(1_790_000_000_500);
  return { clock, node: new NodeTelemetry({ clock }) };
}

test("every field that the specification's section 2.7 names is there (spec 2.7)", () => {
  const specification = readFileSync(new URL("../../docs/specification.md", import.meta.url), "utf8");
  const section = specification.slice(specification.indexOf("### 2.7"), specification.indexOf("### 2.8"));
  const names = [...section.matchAll(/`([a-z0-9_]+)`/g)].map(([, name]) => name ?? "");
  assert.ok(names.length > 30);
  const document = parsed(telemetry().node.document(INPUTS), USERS);
  for (const name of names.filter((word) => word !== "quota_limit")) assert.ok(name in document, name);
});

test("counters add up at once, failures count as errors, refusals do not, and latencies are kept apart (spec 4.6.4)", () => {
  const { clock, node } = telemetry();
  node.bytesWritten(4_000_000);
  node.bytesWritten(1);
  node.bytesRead(5);
  assert.equal(node.document(INPUTS).bytes_written_total, 4_000_001);
  node.operation("write", 10, "done");
  node.operation("write", 30, "failed");
  node.operation("write", 20, "refused");
  node.operation("read", 2, "failed");
  node.call("failed");
  node.call("done");
  clock.jumpWall(-86_400_000);
  clock.advance(61_999);
  const document = node.document(INPUTS);
  assert.deepEqual(
    [
      document.write_ops_total,
      document.read_ops_total,
      document.errors_total,
      document.attempts_total,
      document.failed_writes_total,
      document.failed_reads_total,
      document.refused_total,
    ],
    [3, 1, 3, 6, 1, 1, 1],
  );
  assert.deepEqual(
    [
      document.op_latency_write_ms_p50,
      document.op_latency_write_ms_p99,
      document.op_latency_read_ms_p50,
      document.op_latency_read_samples,
      document.op_latency_write_ms_sum,
    ],
    [20, 30, 2, 1, 60],
  );
  assert.deepEqual([document.uptime_seconds, document.last_restart_unix], [61, 1_790_000_000]);
});

test("byte counts above 2^53 - 1 are decimal strings, and an unknown temperature is null (T17, D12)", () => {
  const back = parsed(telemetry().node.document(INPUTS), USERS);
  assert.equal(back.per_user_quota["alice@example.com"], "18446744073709551615");
  assert.equal(back.per_user_storage["__proto__@example.com"], "9007199254740992");
  assert.equal(back.per_user_storage["alice@example.com"], 123);
  assert.equal(back.quota_drift_bytes, 6);
  assert.equal(back.cpu_temp_celsius, null);
  assert.deepEqual(back.per_user_detail["alice@example.com"], {
    live_bytes: 100,
    trash_bytes: 20,
    staging_bytes: 3,
    file_count: 7,
    inode_count: 9,
    inode_limit: 10_000_000,
    inode_limit_explicit: false,
    last_active_unix: 1_790_000_000,
    quota_explicit: true,
  });
  assert.equal(back.per_user_detail["__proto__@example.com"]?.last_active_unix, null);
  assert.deepEqual([back.trash_bytes, back.staging_bytes, back.users_assigned_count], [21, 3, 2]);
});

test("an empty file that comes or goes shows in the series, though no byte has moved", () => {
  let alice = ALICE;
  const users = new UserMaps(() => alice);
  const samples = (name: "svc_user_inodes" | "svc_user_inode_limit"): string => {
    users.update([ALICE.username]);
    return Buffer.concat(users.samples(name)).toString();
  };
  assert.equal(samples("svc_user_inodes"), 'svc_user_inodes{user="alice@example.com"} 9\n');
  alice = { ...alice, inodeCount: 10 };
  assert.equal(samples("svc_user_inodes"), 'svc_user_inodes{user="alice@example.com"} 10\n');
  assert.match(samples("svc_user_inode_limit"), / 10000000\n$/);
  alice = { ...alice, inodeLimit: 20 };
  assert.match(samples("svc_user_inode_limit"), / 20\n$/);
});

test("the guarded form names no user (T8)", () => {
  const text = Buffer.concat(metricsJson(telemetry().node.document(INPUTS))).toString();
  assert.ok(!text.includes("example.com") && !text.includes("per_user"));
  assert.ok(!text.includes("security_events") && !text.includes("damaged_files"));
  assert.ok(text.includes('"disk_free_bytes":650'));
});

test("with the maps go the damaged files and how many security events there were (T8, D22)", () => {
  const { node } = telemetry();
  const damaged = [{ username: "alice@example.com", path: "/a", trashed: false, size: 1 }];
  const pieces = metricsJson(node.document(INPUTS), USERS, { damaged, securityEventsTotal: 7 });
  const back = parse64(Buffer.concat(pieces).toString()) as Readonly<Record<string, unknown>>;
  assert.deepEqual([back["damaged_files"], back["security_events_total"]], [damaged, 7]);
});

test("percent is what df shows: used of what users can have, two decimals, 0 to 100 (D12)", () => {
  const document = telemetry().node.document(INPUTS);
  assert.equal(document.disk_usage_percent, 27.78); // 250 of 250 + 650: the rest is root's
  assert.equal(document.mem_usage_percent, 33.33);
  assert.deepEqual([percent(0, 0), percent(5, 4), percent(-1, 4), percent(Number.NaN, 4)], [0, 100, 0, 0]);
});

test("what was counted is told with when, and what differs by whose counters; before that nothing is known (D16)", () => {
  const { care } = INPUTS;
  const document = telemetry().node.document(INPUTS);
  assert.deepEqual(
    [
      document.drifted_counters,
      document.drift_directory_bytes,
      document.drift_live_bytes,
      document.drift_trash_bytes,
      document.drift_staging_bytes,
    ],
    [5, 1, 2, 3, 4],
  );
  assert.deepEqual(
    [
      document.recount_running,
      document.recount_pass_started_unix,
      document.recount_pass_roots,
      document.recount_pass_rows,
    ],
    [true, 1_790_000_001, 7, 8],
  );
  assert.deepEqual(
    [document.recount_last_pass_unix, document.recount_last_pass_roots, document.recount_last_pass_rows],
    [1_790_000_000, 9, 10],
  );
  const recount = { ...care.recount, pass: undefined, lastEndedAtMs: undefined, drift: undefined };
  const before = telemetry().node.document({ ...INPUTS, care: { ...care, recount } });
  assert.deepEqual(
    [
      before.quota_drift_bytes,
      before.drifted_counters,
      before.drift_live_bytes,
      before.recount_last_pass_unix,
    ],
    [null, null, null, null],
  );
});

test("what could not be read is null, and nothing is made up for it (D12)", () => {
  const host = {
    ...INPUTS.host,
    diskTotalBytes: null,
    diskUsedBytes: null,
    diskFreeBytes: null,
    loadAvg1m: null,
  };
  const recount = { ...INPUTS.care.recount, lastEndedAtMs: undefined, drift: undefined };
  const care = { ...INPUTS.care, recount };
  const document = parsed(telemetry().node.document({ ...INPUTS, host, care }));
  const { disk_total_bytes, disk_usage_percent, load_avg_1m, quota_drift_bytes, git_commit, cert_days_left } =
    document;
  assert.deepEqual(
    [disk_total_bytes, disk_usage_percent, load_avg_1m, quota_drift_bytes, git_commit, cert_days_left],
    [null, null, null, null, null, null],
  );
});

test("a user who changes is written anew, the others stay, and sums follow; 600 users over several blocks (D12)", () => {
  const people = new Map<string, UserReadings>();
  for (let at = 0; at < 600; at++) people.set(`u${at}@x`, { ...ALICE, username: `u${at}@x`, liveBytes: at });
  const asked: string[] = [];
  const users = new UserMaps((username) => {
    asked.push(username);
    return people.get(username);
  });
  const node = telemetry().node.document(INPUTS);
  assert.deepEqual(parsed(node, users).per_user_storage, {});
  users.update(people.keys());
  assert.equal(asked.length, 600);
  const before = users.json("per_user_detail");
  people.set("u300@x", { ...ALICE, username: "u300@x", liveBytes: 5_000, trashBytes: 1_000 });
  users.update(["u300@x", "a visitor without a root"]);
  assert.equal(asked.length, 602);
  const after = users.json("per_user_detail");
  assert.deepEqual(
    after.map((piece, at) => before[at]?.equals(piece)),
    [true, false, true],
  );
  const back = parsed(node, users);
  for (const map of USER_MAPS) assert.equal(Object.keys(back[map]).length, 600);
  assert.equal(back.per_user_storage["u300@x"], 6_003);
  assert.equal(back.per_user_storage["u199@x"], 199 + 23);
  assert.equal(users.trashBytes, 600n * 20n + 980n);
});

test("who is at 95 % of the quota or above is listed apart, also when there are more users than the maps list (spec 2.7)", () => {
  const people = new Map<string, UserReadings>();
  const put = (at: number, liveBytes: number, quotaBytes = 1_000n): string => {
    const username = `u${at}@x`;
    const none = { trashBytes: 0, stagingBytes: 0 };
    people.set(username, { ...ALICE, ...none, username, liveBytes, quotaBytes });
    return username;
  };
  for (let at = 0; at <= METRICS_USERS_LISTED_MAX; at++) put(at, 949);
  const users = new UserMaps((username) => people.get(username));
  users.update(people.keys());
  const node = telemetry().node.document(INPUTS);
  const near = (): unknown => {
    const { near_quota_storage: storage, near_quota_limit: limit } = parsed(node, users) as unknown as Record<
      string,
      unknown
    >;
    return [storage, limit];
  };
  assert.deepEqual(near(), [{}, {}]);
  const last = put(METRICS_USERS_LISTED_MAX, 950);
  users.update([last, put(7, 2_000, 2_105n)]);
  assert.deepEqual(near(), [
    { [last]: 950, "u7@x": 2_000 },
    { [last]: 1_000, "u7@x": 2_105 },
  ]);
  assert.ok(
    !Object.hasOwn(parsed(node, users).per_user_storage, last),
    "nobody beyond the limit is in the lists of all",
  );
  users.update([put(METRICS_USERS_LISTED_MAX, 1_001), put(7, 2_000, 2_106n)]);
  assert.deepEqual(near(), [{ [last]: 1_001 }, { [last]: 1_000 }]);
  users.update([put(METRICS_USERS_LISTED_MAX, 0)]);
  assert.deepEqual(near(), [{}, {}]);
});

test("whatever changes in whatever order, the maps say what a fresh reading says, and what was handed out before stays as it was", () => {
  const user = fc.record({
    at: fc.integer({ min: 0, max: 600 }),
    liveBytes: fc.oneof(
      fc.integer({ min: 0, max: 20 }),
      fc.constant(12_345_678),
      fc.constant(Number.MAX_SAFE_INTEGER),
    ),
    trashBytes: fc.integer({ min: 0, max: 3 }),
    quotaBytes: fc.constantFrom(1n, 2n, 2n ** 64n - 1n),
    lastActiveWallMs: fc.option(fc.integer({ min: 0, max: 30_000 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(fc.array(user, { maxLength: 6 }), { maxLength: 6 }), (rounds) => {
      const people = new Map<string, UserReadings>();
      for (let at = 0; at < 300; at++) people.set(`u${at}@x`, { ...ALICE, username: `u${at}@x` });
      const users = new UserMaps((username) => people.get(username));
      users.update(people.keys());
      const handedOut: [pieces: readonly Buffer[], text: string][] = [];
      for (const round of rounds) {
        for (const { at, ...change } of round) {
          const username = `u${at}@x`;
          people.set(username, { ...ALICE, username, ...change });
          users.update([username]);
        }
        for (const map of USER_MAPS) {
          const pieces = users.json(map);
          handedOut.push([pieces, Buffer.concat(pieces).toString()]);
          const fresh = new UserMaps((username) => people.get(username));
          fresh.update(people.keys());
          assert.equal(Buffer.concat(pieces).toString(), Buffer.concat(fresh.json(map)).toString());
        }
      }
      for (const [pieces, text] of handedOut) assert.equal(Buffer.concat(pieces).toString(), text);
    }),
    { numRuns: 60 },
  );
});
