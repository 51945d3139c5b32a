// Tests both sides of the rules' thresholds, and unknown values (spec 3.1, 3.3, 8; D11, D24).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { METRICS_USERS_LISTED_MAX, SECURITY_EVENTS_KEPT } from "#base/limits.ts";
import type { Condition, Moment } from "./condition.ts";
import {
  certificateCondition,
  fewestDays,
  type NodeGauges,
  nodeConditions,
  offlineCondition,
} from "./node-rules.ts";
import { QuotaRule, quotaLevel, type UserReadings } from "./quota-rule.ts";
import { RestartRule } from "./restart-rule.ts";
import { FailureWindow, loginFailures, type ReportedEvent, SecurityRule } from "./security-rule.ts";

const NODE = { id: "n1", name: "fs-1" };
const HEALTHY: NodeGauges = {
  diskUsagePercent: 40,
  diskFreeBytes: 600n,
  diskTotalBytes: 1_000n,
  reserveBytes: 100n,
  inodeFree: 500n,
  inodeTotal: 1_000n,
  cpuTempCelsius: 45,
  certDaysLeft: 60,
  clockSkewMs: 0,
  quotaDriftBytes: 0n,
  driftedCounters: 0,
  storageFailed: false,
  damagedFileCount: 0,
  authMock: false,
  invalidFields: [],
};
const QUIET = { errors: 0, ops: 0, isFull: true, failingRun: 0 };
const at = (steadyMs: number): Moment => ({ wallMs: 1_790_000_000_000 + steadyMs, steadyMs });

function conditionOf(
  type: Condition["type"],
  gauges: Partial<NodeGauges>,
  window: Parameters<typeof nodeConditions>[2]["window"] = QUIET,
): Condition {
  const all = nodeConditions(NODE, { ...HEALTHY, ...gauges }, { window, fullInDays: undefined });
  const found = all.find((condition) => condition.type === type);
  assert.ok(found !== undefined);
  assert.equal(found.key, `${type}:n1`);
  return found;
}

test("a healthy node has nothing but clear conditions", () => {
  const levels = nodeConditions(NODE, HEALTHY, { window: QUIET, fullInDays: undefined }).map(
    ({ level }) => level,
  );
  assert.deepEqual([...new Set(levels)], ["clear"]);
});

for (const [type, gauge, warning, critical] of [
  ["storage_warning", "diskUsagePercent", 80, 95],
  ["temp_warning", "cpuTempCelsius", 65, 85],
] as const) {
  test(`${type}: above ${warning} and ${critical} only; exactly there nothing changes; unknown is not healthy (spec 3.1, D24)`, () => {
    const level = (value: number | null): string => {
      const found = conditionOf(type, { [gauge]: value });
      return found.keepsCritical === true ? `${found.level}, keeps critical` : found.level;
    };
    assert.deepEqual(
      [
        warning - 0.01,
        warning,
        warning + 0.01,
        critical - 0.01,
        critical,
        critical + 0.01,
        null,
        Number.NaN,
      ].map(level),
      ["clear", "hold", "warning", "warning", "warning, keeps critical", "critical", "unknown", "unknown"],
    );
    assert.equal(conditionOf(type, { [gauge]: critical }).threshold, warning);
    assert.equal(conditionOf(type, { [gauge]: critical + 1 }).threshold, critical);
  });
}

test("inodes_low: below 10 and 3 % of the inodes only; exactly there nothing changes; none is known where there is no number", () => {
  const level = (inodeFree: bigint | null, inodeTotal: bigint | null = 1_000n): string => {
    const found = conditionOf("inodes_low", { inodeFree, inodeTotal });
    return found.keepsCritical === true ? `${found.level}, keeps critical` : found.level;
  };
  assert.deepEqual(
    [101n, 100n, 99n, 31n, 30n, 29n, 0n].map((free) => level(free)),
    ["clear", "hold", "warning", "warning", "warning, keeps critical", "critical", "critical"],
  );
  assert.deepEqual([level(null), level(5n, null), level(0n, 0n)], ["unknown", "unknown", "clear"]);
  assert.equal(conditionOf("inodes_low", { inodeFree: 99n }).threshold, 10);
  const found = conditionOf("inodes_low", { inodeFree: 25n });
  assert.deepEqual([found.value, found.threshold, found.detail], [2.5, 3, { free_inodes: 25 }]);
});

test("error_spike: above 5 and 20 % of at least 20 operations (T4)", () => {
  const level = (errors: number, ops: number, isFull = true): string =>
    conditionOf("error_spike", {}, { errors, ops, isFull, failingRun: 0 }).level;
  assert.deepEqual(
    [level(19, 19), level(1, 1), level(20, 20), level(1, 20), level(50, 1_000), level(51, 1_000)],
    ["unknown", "unknown", "critical", "hold", "hold", "warning"],
  );
  assert.deepEqual([level(200, 1_000), level(201, 1_000), level(1, 21)], ["warning", "critical", "clear"]);
  assert.equal(level(0, 0), "clear", "a whole minute without a failure");
  assert.equal(level(0, 0, false), "unknown", "less than a minute is no minute");
  assert.equal(
    conditionOf("error_spike", {}, { errors: 500, ops: 20, isFull: true, failingRun: 0 }).value,
    100,
  );
});

test("error_spike: fewer than 20 attempts that have all failed for a while are critical, and say how many (T4)", () => {
  const of = (errors: number, ops: number, failingRun: number): Condition =>
    conditionOf("error_spike", {}, { errors, ops, isFull: true, failingRun });
  assert.deepEqual([of(2, 2, 8).level, of(0, 0, 8).level], ["critical", "critical"]);
  assert.deepEqual([of(2, 2, 8).value, of(2, 2, 8).detail], [100, { errors: 8, operations: 8 }]);
  assert.deepEqual([of(2, 2, 0).level, of(0, 0, 0).level], ["unknown", "clear"]);
  assert.deepEqual(
    [of(1, 1, 1).level, of(1, 1, 1).value],
    ["critical", 100],
    "a run is counted where it is long enough",
  );
  assert.equal(of(0, 20, 8).level, "clear", "20 attempts speak for themselves");
});

test("certificates: less than 14 days, less than 2; clocks: more than 60 s either way (B-11, D24)", () => {
  const days = (value: number | null): string => conditionOf("cert_expiring", { certDaysLeft: value }).level;
  assert.deepEqual([14, 13, 2, 1, 0, -3, null].map(days), [
    "clear",
    "warning",
    "warning",
    "critical",
    "critical",
    "critical",
    "unknown",
  ]);
  const skew = (value: number | null): string => conditionOf("clock_skew", { clockSkewMs: value }).level;
  assert.deepEqual([59_999, 60_000, 60_001, -60_000, -60_001, null].map(skew), [
    "clear",
    "hold",
    "warning",
    "hold",
    "warning",
    "unknown",
  ]);
});

test("drift either way, damage, a failed disk, mock mode and invalid fields are conditions as soon as there are any (D11, M-05)", () => {
  assert.deepEqual(
    [
      conditionOf("quota_drift", { quotaDriftBytes: -1n }),
      conditionOf("quota_drift", { quotaDriftBytes: null }),
      conditionOf("corruption", { damagedFileCount: 1 }),
      conditionOf("storage_failed", { storageFailed: true }),
      conditionOf("storage_failed", { storageFailed: null }),
      conditionOf("auth_mock", { authMock: true }),
      conditionOf("bad_metrics", { invalidFields: ["cpu_temp_celsius"] }),
    ].map(({ level }) => level),
    ["warning", "unknown", "critical", "critical", "unknown", "warning", "warning"],
  );
});

test("node_offline follows the node's status: stale alone is unknown (T5)", () => {
  const level = (isOffline: boolean, isStale: boolean): string =>
    offlineCondition(NODE, { isOffline, isStale, lastSeen: 0, users: null, awaySeconds: undefined }).level;
  assert.deepEqual(
    [level(false, false), level(false, true), level(true, true)],
    ["clear", "unknown", "critical"],
  );
});

test("quota: exact to the byte at 95 and 100 %, also above 2^53 (T1)", () => {
  for (const quota of [1_000n, 17_179_869_180n, 2n ** 63n - (2n ** 63n % 100n)]) {
    const edge = (quota * 95n) / 100n;
    assert.deepEqual(
      [edge - 1n, edge, edge + 1n, quota - 1n, quota, quota + 1n].map((used) => quotaLevel(used, quota)),
      ["clear", "hold", "warning", "warning", "critical", "critical"],
    );
  }
});

const users = (used: Readonly<Record<string, bigint>>, more: Partial<UserReadings> = {}): UserReadings => ({
  perUserStorage: new Map(Object.entries(used)),
  perUserQuota: new Map(Object.keys(used).map((name) => [name, 1_000n])),
  perUserDetail: new Map(),
  nearQuota: null,
  usersTruncated: false,
  usersWithheld: false,
  ...more,
});
const said = (conditions: readonly Condition[]): string[] =>
  conditions.map(({ username, level }) => `${username} ${level}`);

test("quota conditions are made for users near the edge, and once more when they no longer are", () => {
  const rule = new QuotaRule([]);
  const at960 = rule.conditions(NODE, users({ far: 10n, near: 960n, full: 1_000n, held: 950n }));
  assert.deepEqual(said(at960), ["near warning", "full critical", "held hold"]);
  assert.deepEqual(at960[0]?.detail, { used_bytes: 960, quota_bytes: 1_000 });
  assert.deepEqual(said(rule.conditions(NODE, users({ far: 10n, near: 949n, full: 1_000n, held: 950n }))), [
    "full critical",
    "held hold",
    "near clear",
  ]);
  assert.deepEqual(said(rule.conditions(NODE, users({ far: 10n, near: 949n, full: 1_000n, held: 950n }))), [
    "full critical",
    "held hold",
  ]);
});

test("who is far from the edge is left out, and nobody else: exact to the byte whatever the quota (T1)", () => {
  const quotas = fc.oneof(
    fc.bigInt({ min: 1n, max: 2n ** 20n }),
    fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n }),
  );
  const fromEdge = fc.bigInt({ min: -3n, max: 3n });
  fc.assert(
    fc.property(quotas, fromEdge, (quota, off) => {
      const edge = (quota * 95n) / 100n + off;
      const used = edge < 0n ? 0n : edge;
      const level = quotaLevel(used, quota);
      const quotaOf = new Map([["bob", quota]]);
      const found = new QuotaRule([]).conditions(NODE, users({ bob: used }, { perUserQuota: quotaOf }));
      assert.deepEqual(said(found), level === "clear" ? [] : [`bob ${level}`]);
    }),
    {
      numRuns: 1_000,
      // Their usage is at 95 % or above it, and below that of the quota as a double.
      examples: [
        [37_716_573_687_117_900n, 0n],
        [17_743_519_137_685_803n, 1n],
      ],
    },
  );
});

test("the smallest quota has an edge too (T1)", () => {
  const rule = new QuotaRule([]);
  const perUserQuota = new Map([["bob", 1n]]);
  assert.deepEqual(said(rule.conditions(NODE, users({ bob: 1n }, { perUserQuota }))), ["bob critical"]);
  assert.deepEqual(said(rule.conditions(NODE, users({ bob: 0n }, { perUserQuota }))), ["bob clear"]);
});

test("a user who is gone is clear; one whom the node does not list, or may not tell of, is unknown", () => {
  const rule = new QuotaRule([{ username: "bob", nodeId: "n1" }]);
  assert.deepEqual(rule.conditions(NODE, users({}, { usersWithheld: true })), []);
  assert.deepEqual(rule.conditions(NODE, users({}, { usersTruncated: true })), []);
  assert.deepEqual(said(rule.conditions(NODE, users({}))), ["bob clear"]);
  assert.deepEqual(rule.conditions(NODE, users({})), []);
});

test("a user whom two nodes claim is counted on the first, until that one lets go (M-05)", () => {
  const rule = new QuotaRule([]);
  const other = { id: "n2", name: "fs-2" };
  assert.equal(rule.conditions(NODE, users({ bob: 960n })).length, 1);
  assert.deepEqual(rule.conditions(other, users({ bob: 2_000n })), []);
  assert.deepEqual(said(rule.conditions(NODE, users({ bob: 1n }))), ["bob clear"]);
  assert.deepEqual(said(rule.conditions(other, users({ bob: 2_000n }))), ["bob critical"]);
});

test("a user is counted at home: no other node raises, keeps or ends the alert of one of them (M-05)", () => {
  const homes = new Map<string, string>();
  const rule = new QuotaRule([], (username) => homes.get(username));
  const liar = { id: "n2", name: "fs-2" };
  homes.set("far", "n1");
  assert.deepEqual(rule.conditions(NODE, users({ far: 10n })), [], "home or not, who is far is no news");
  // While the home is unknown, the first node that reports the user counts.
  assert.deepEqual(said(rule.conditions(liar, users({ bob: 1_000n }))), ["bob critical"]);
  homes.set("bob", "n1");
  assert.deepEqual(said(rule.conditions(NODE, users({ bob: 960n }))), ["bob warning"]);
  assert.deepEqual(rule.conditions(liar, users({ bob: 1_000n })), []);
  assert.deepEqual(rule.conditions(liar, users({ bob: 1n })), []);
  assert.deepEqual(said(rule.conditions(NODE, users({ bob: 10n }))), ["bob clear"]);
  assert.deepEqual(rule.conditions(liar, users({ bob: 1_000n })), [], "and it never begins again");
});

test("an alert that another node has raised ends by what the home says, or by that node's next answer", () => {
  const homes = new Map<string, string>();
  const rule = new QuotaRule([], (username) => homes.get(username));
  const liar = { id: "n2", name: "fs-2" };
  rule.conditions(liar, users({ bob: 1_000n, ann: 1_000n }));
  homes.set("bob", "n1").set("ann", "n3");
  const [home] = rule.conditions(NODE, users({ bob: 10n }));
  assert.deepEqual([home?.username, home?.level, home?.nodeId], ["bob", "clear", "n1"]);
  assert.deepEqual(said(rule.conditions(liar, users({}, { usersWithheld: true }))), ["ann clear"]);
});

test("a restart is seen by its time or the boot, once, and not when somebody worked on the node (D24)", () => {
  const rule = new RestartRule();
  const life = (lastRestartUnix: number | null, bootId: string | null = "b1") => ({
    lastRestartUnix,
    bootId,
  });
  assert.equal(rule.observe(NODE, life(100), at(0)), undefined, "the first look knows of nothing before");
  assert.equal(rule.observe(NODE, life(100), at(1)), undefined);
  assert.deepEqual(rule.observe(NODE, life(200), at(2))?.detail, {});
  assert.equal(rule.observe(NODE, life(null, null), at(3)), undefined, "unknown is no other life");
  assert.equal(rule.observe(NODE, life(200), at(4)), undefined);
  assert.deepEqual(rule.observe(NODE, life(300, "b2"), at(5))?.detail, { machine: "restarted" });
  rule.touched("n1", at(10));
  assert.equal(rule.observe(NODE, life(400, "b2"), at(10 + 5 * 60_000)), undefined);
  assert.ok(rule.observe(NODE, life(500, "b2"), at(11 + 5 * 60_000)) !== undefined);
});

const event = (id: string, more: Partial<ReportedEvent> = {}): ReportedEvent => ({
  id,
  type: "ip_mismatch",
  username: "bob@example.com",
  ipBound: "192.0.2.1",
  ipSeen: "203.0.113.7",
  count: 1,
  ...more,
});

test("security events: each attempt once, growing counts by what they grew, none again after a restart (D22)", () => {
  const marks = new Map<string, string>();
  const rule = new SecurityRule(marks);
  const [first] = rule.occurrences(NODE, [event("01")], at(0));
  assert.deepEqual(
    [first?.key, first?.level, first?.username, first?.count],
    ["ip_mismatch:bob@example.com", "warning", "bob@example.com", 1],
  );
  assert.deepEqual(rule.occurrences(NODE, [event("01")], at(1)), []);
  assert.equal(rule.occurrences(NODE, [event("01", { count: 5 })], at(2))[0]?.count, 4);
  const [mock] = rule.occurrences(NODE, [event("02", { type: "mock_token", username: undefined })], at(3));
  assert.deepEqual([mock?.key, mock?.level, mock?.username], ["mock_token:n1", "critical", undefined]);
  const again = new SecurityRule(marks);
  assert.deepEqual(again.occurrences(NODE, [event("01", { count: 5 }), event("02")], at(0)), []);
  assert.equal(again.occurrences(NODE, [event("03")], at(1)).length, 1);
});

test("failed sign-ins are an alert from the tenth within 15 minutes on, one for all that came since (W-03)", () => {
  const window = new FailureWindow();
  for (let i = 0; i < 9; i++) window.add(1, "192.0.2.1", at(i * 1_000));
  assert.equal(window.take(at(9_000)), undefined);
  window.add(1, "192.0.2.2", at(10_000));
  assert.deepEqual(window.take(at(10_000)), { count: 10, lastAddress: "192.0.2.2" });
  assert.equal(window.take(at(11_000)), undefined, "told already");
  const [later] = [at(15 * 60_000)];
  window.add(1, "192.0.2.3", later);
  assert.equal(window.take(later)?.count, 10, "the first has left the window");
  window.add(1, "192.0.2.3", at(60 * 60_000));
  assert.equal(window.take(at(60 * 60_000)), undefined);
});

test("an alert about storage says what is known of the disk, and nothing of what is not (D24)", () => {
  const detail = (gauges: Partial<NodeGauges>, fullInDays?: number): unknown =>
    nodeConditions(NODE, { ...HEALTHY, ...gauges }, { window: QUIET, fullInDays })[0]?.detail;
  assert.deepEqual(detail({}), { free_bytes: 600, total_bytes: 1_000 });
  assert.deepEqual(detail({ diskFreeBytes: null, diskTotalBytes: null }), {});
  assert.deepEqual(detail({ diskFreeBytes: 2n ** 63n }, 12.345), {
    free_bytes: "9223372036854775808",
    total_bytes: 1_000,
    full_in_days: 12.3,
  });
});

test("an alert carries what was measured and the edge that it was held against (spec 3.1, D11)", () => {
  const facts = (type: Condition["type"], gauges: Partial<NodeGauges>): unknown => {
    const { level, value, threshold } = conditionOf(type, gauges);
    return [level, value, threshold];
  };
  assert.deepEqual(facts("cert_expiring", { certDaysLeft: 1 }), ["critical", 1, 2]);
  assert.deepEqual(facts("cert_expiring", { certDaysLeft: 2 }), ["warning", 2, 14]);
  assert.deepEqual(facts("clock_skew", { clockSkewMs: -60_001 }), ["warning", -60_001, 60_000]);
  assert.deepEqual(facts("quota_drift", { quotaDriftBytes: -7n }), ["warning", 7, 0]);
  assert.deepEqual(facts("quota_drift", { quotaDriftBytes: 1n }), ["warning", 1, 0]);
  assert.deepEqual(facts("quota_drift", { quotaDriftBytes: 0n }), ["clear", 0, 0]);
  assert.deepEqual(facts("quota_drift", { driftedCounters: 1 }), ["warning", 0, 0]);
  assert.deepEqual(facts("quota_drift", { driftedCounters: null }), ["clear", 0, 0]);
  assert.deepEqual(facts("corruption", { damagedFileCount: null }), ["unknown", undefined, undefined]);
  assert.deepEqual(facts("corruption", { damagedFileCount: 3 }), ["critical", 3, 0]);
  assert.deepEqual(
    conditionOf("error_spike", {}, { errors: 3, ops: 30, isFull: true, failingRun: 0 }).detail,
    {
      errors: 3,
      operations: 30,
    },
  );
});

test("of fields that are not valid the first five are named, and how many more there are (M-05)", () => {
  const names = [
    "disk_total_bytes",
    "disk_used_bytes",
    "disk_free_bytes",
    "disk_usage_percent",
    "cpu_temp_celsius",
  ];
  const fields = (count: number): unknown =>
    conditionOf("bad_metrics", { invalidFields: [...names, "load_avg_1m", "load_avg_5m"].slice(0, count) })
      .detail;
  assert.deepEqual(fields(0), {});
  assert.deepEqual(fields(5), { fields: names.join(", ") });
  assert.deepEqual(fields(7), { fields: `${names.join(", ")} and 2 more` });
});

test("what is not valid about users, and what nobody knows, is an alert of its own that visitors do not see (spec 5.8.4)", () => {
  const invalidFields = ["load_avg_1m", "per_user_quota", "unheard_of"];
  const gauges = { ...HEALTHY, invalidFields };
  const found = nodeConditions(NODE, gauges, { window: QUIET, fullInDays: undefined })
    .filter(({ type }) => type === "bad_metrics")
    .map(({ key, level, detail, isOfUsers }) => [key, level, detail?.["fields"], isOfUsers]);
  assert.deepEqual(found, [
    ["bad_metrics:n1", "warning", "load_avg_1m", undefined],
    ["bad_metrics:n1:users", "warning", "per_user_quota, unheard_of", true],
  ]);
});

test("a node that is away says since when and whom it keeps from their files; one that is back for how long (spec 3.3)", () => {
  const now = { isOffline: true, isStale: true, lastSeen: 90, users: null, awaySeconds: undefined };
  assert.deepEqual(offlineCondition(NODE, now).detail, { last_seen: 90 });
  assert.deepEqual(offlineCondition(NODE, { ...now, users: 0 }).detail, { last_seen: 90, users: 0 });
  assert.deepEqual(offlineCondition(NODE, { ...now, reason: "it is shut" }).detail, {
    last_seen: 90,
    reason: "it is shut",
  });
  const back = { ...now, isOffline: false, isStale: false };
  assert.deepEqual(offlineCondition(NODE, back).detail, {});
  assert.deepEqual(offlineCondition(NODE, { ...back, awaySeconds: 31 }).detail, { away_seconds: 31 });
});

test("whoever a node calls near is looked at, whichever users its maps list (spec 2.7, 3.1)", () => {
  const rule = new QuotaRule([{ username: "before", nodeId: NODE.id }]);
  const near = (used: Readonly<Record<string, bigint>>): UserReadings =>
    users(
      { listed: 10n },
      {
        usersTruncated: true,
        nearQuota: {
          storage: new Map(Object.entries(used)),
          limit: new Map(Object.keys(used).map((name) => [name, 1_000n])),
        },
      },
    );
  assert.deepEqual(said(rule.conditions(NODE, near({ unlisted: 1_000n, listed: 950n }))), [
    "unlisted critical",
    "listed hold",
    "before clear",
  ]);
  const over = rule.conditions(NODE, near({}));
  assert.deepEqual(said(over), ["unlisted clear", "listed clear"]);
  assert.deepEqual(
    over.map(({ detail }) => detail),
    [undefined, { used_bytes: 10, quota_bytes: 1_000 }],
  );
  // A full list may lack users.
  const many = Object.fromEntries(
    Array.from({ length: METRICS_USERS_LISTED_MAX }, (_, at) => [`u${at}`, 950n]),
  );
  rule.conditions(NODE, near({ last: 1_000n }));
  assert.ok(!said(rule.conditions(NODE, near(many))).includes("last clear"));
});

test("nobody without a quota, or with one of zero, is near its edge (T1)", () => {
  const rule = new QuotaRule([]);
  const quotas = new Map([["zero", 0n]]);
  assert.deepEqual(rule.conditions(NODE, users({ zero: 5n, none: 5n }, { perUserQuota: quotas })), []);
});

test("a user whose quota is not told any more is unknown, and clear when there is neither use nor quota", () => {
  const rule = new QuotaRule([]);
  rule.conditions(NODE, users({ bob: 960n }));
  assert.deepEqual(rule.conditions(NODE, users({ bob: 960n }, { perUserQuota: new Map() })), []);
  assert.deepEqual(rule.conditions(NODE, users({ bob: 1n }, { perUserQuota: new Map([["bob", 0n]]) })), []);
  assert.deepEqual(rule.conditions(NODE, users({}, { usersTruncated: null })), []);
  assert.deepEqual(said(rule.conditions(NODE, users({}))), ["bob clear"]);
});

test("an alert about a quota says what is used, what is allowed and, where it is known, what the trash holds (D14)", () => {
  const rule = new QuotaRule([]);
  const detail = (trashBytes: bigint | null): unknown => {
    const [found] = rule.conditions(
      NODE,
      users({ bob: 1_000n }, { perUserDetail: new Map([["bob", { trashBytes }]]) }),
    );
    return [found?.value, found?.threshold, found?.detail, found?.key, found?.nodeName];
  };
  const about = ["quota_exceeded:bob", "fs-1"];
  assert.deepEqual(detail(null), [100, 100, { used_bytes: 1_000, quota_bytes: 1_000 }, ...about]);
  assert.deepEqual(detail(40n), [
    100,
    100,
    { used_bytes: 1_000, quota_bytes: 1_000, trash_bytes: 40 },
    ...about,
  ]);
  assert.equal(rule.conditions(NODE, users({ bob: 960n }))[0]?.threshold, 95);
});

test("a node that is forgotten holds its users no longer: the next that tells of them does (M-05)", () => {
  const rule = new QuotaRule([]);
  const other = { id: "n2", name: "fs-2" };
  rule.conditions(NODE, users({ bob: 960n, ann: 990n }));
  rule.forget("n2");
  assert.deepEqual(rule.conditions(other, users({ bob: 960n })), []);
  rule.forget("n1");
  assert.deepEqual(said(rule.conditions(other, users({ bob: 960n, ann: 990n }))), [
    "bob warning",
    "ann warning",
  ]);
  assert.deepEqual(said(rule.conditions(NODE, users({}))), []);
});

test("what a node did not say of its life at first is learned later, and is no restart (D24)", () => {
  const rule = new RestartRule();
  const see = (lastRestartUnix: number | null, bootId: string | null, ms: number) =>
    rule.observe(NODE, { lastRestartUnix, bootId }, at(ms));
  assert.equal(see(null, null, 0), undefined);
  assert.equal(see(100, null, 1), undefined);
  assert.equal(see(null, "b1", 2), undefined);
  assert.equal(see(null, null, 3), undefined);
  assert.deepEqual(see(null, "b2", 4)?.detail, { machine: "restarted" });
  assert.equal(see(100, "b2", 5), undefined);
  const restart = see(101, "b2", 6);
  assert.deepEqual(restart, {
    key: "service_restart:n1",
    type: "service_restart",
    level: "warning",
    nodeId: "n1",
    nodeName: "fs-1",
    detail: {},
  });
});

test("a node that is forgotten and comes again is a new one, whoever worked on it before (D24)", () => {
  const rule = new RestartRule();
  const life = (lastRestartUnix: number) => ({ lastRestartUnix, bootId: "b1" });
  rule.observe(NODE, life(100), at(0));
  rule.touched("n1", at(1));
  rule.forget("n1");
  assert.equal(rule.observe(NODE, life(200), at(2)), undefined);
  assert.ok(rule.observe(NODE, life(300), at(3)) !== undefined);
});

test("an attempt from elsewhere says from where and for which address, and without a user it is about the node (D22)", () => {
  const rule = new SecurityRule(new Map());
  const [full] = rule.occurrences(NODE, [event("01", { count: 3 })], at(0));
  assert.deepEqual(full, {
    key: "ip_mismatch:bob@example.com",
    type: "ip_mismatch",
    level: "warning",
    nodeId: "n1",
    nodeName: "fs-1",
    username: "bob@example.com",
    value: 3,
    count: 3,
    detail: { ip_bound: "192.0.2.1", ip_seen: "203.0.113.7" },
  });
  const bare = { username: undefined, ipBound: undefined, ipSeen: undefined };
  const [less] = rule.occurrences(NODE, [event("02", bare)], at(1));
  assert.deepEqual([less?.key, less?.detail, "username" in (less ?? {})], ["ip_mismatch:n1", {}, false]);
  assert.deepEqual(
    rule.occurrences(NODE, [event("03", { type: "unknown_certificate" as never })], at(2)),
    [],
  );
});

test("passwords that fail on one node are one alert of that node, from the tenth on (W-03)", () => {
  const rule = new SecurityRule(new Map());
  const failed = (id: string, count: number) =>
    event(id, { type: "admin_hash_failed", username: undefined, count, ipSeen: `192.0.2.${count}` });
  assert.deepEqual(rule.occurrences(NODE, [failed("01", 4)], at(0)), []);
  assert.deepEqual(rule.occurrences({ id: "n2", name: "fs-2" }, [failed("01", 9)], at(0)), []);
  assert.deepEqual(rule.occurrences(NODE, [failed("01", 9)], at(2_000)), []);
  assert.deepEqual(rule.occurrences(NODE, [failed("02", 1)], at(3_000)), [
    {
      key: "login_failures:n1",
      type: "login_failures",
      level: "warning",
      nodeId: "n1",
      nodeName: "fs-1",
      value: 10,
      threshold: 10,
      detail: { address: "192.0.2.1" },
    },
  ]);
  assert.deepEqual(rule.occurrences(NODE, [], at(4_000)), []);
  rule.forget("n1");
  assert.deepEqual(rule.occurrences(NODE, [failed("03", 9)], at(5_000)), [], "counted anew");
});

test("failed sign-ins to the console are about no node, and an address that nobody knows is not told (W-03)", () => {
  assert.deepEqual(loginFailures({ count: 12, lastAddress: undefined }), {
    key: "login_failures",
    type: "login_failures",
    level: "warning",
    value: 12,
    threshold: 10,
    detail: {},
  });
});

test("failures of one second are one entry and leave the window together; those of the next leave later (W-03)", () => {
  const window = new FailureWindow();
  window.add(5, "a", at(0));
  window.add(4, "a", at(999));
  window.add(1, "b", at(1_000));
  assert.deepEqual(window.take(at(15 * 60_000 - 1)), { count: 10, lastAddress: "b" });
  window.add(8, "c", at(15 * 60_000));
  assert.equal(window.take(at(15 * 60_000)), undefined, "nine of the first second are gone");
  window.add(1, "d", at(15 * 60_000));
  assert.equal(window.take(at(15 * 60_000 + 999))?.count, 10);
});

test("also in a window with older ones, failures of one second leave together (W-03)", () => {
  const window = new FailureWindow();
  for (const [count, ms] of [
    [1, 0],
    [5, 5_000],
    [4, 5_900],
  ] as const)
    window.add(count, "a", at(ms));
  const later = 5_000 + 15 * 60_000;
  window.add(9, "b", at(later));
  assert.equal(window.take(at(later)), undefined);
  window.add(1, "b", at(later));
  assert.equal(window.take(at(later))?.count, 10);
});

test("of each list no event is reported twice, however many came before it (D22)", () => {
  const rule = new SecurityRule(new Map());
  const list = (from: number): ReportedEvent[] =>
    Array.from({ length: SECURITY_EVENTS_KEPT }, (_, at) => event(String(from + at).padStart(6, "0")));
  for (let from = 0; from < 5 * SECURITY_EVENTS_KEPT; from += SECURITY_EVENTS_KEPT) {
    assert.equal(rule.occurrences(NODE, list(from), at(from)).length, SECURITY_EVENTS_KEPT);
    assert.deepEqual(rule.occurrences(NODE, list(from), at(from + 1)), []);
  }
});

test("after a node's clock was set back its attempts are alerts all the same, and no old one is again (C-01, D22)", () => {
  const marks = new Map<string, string>();
  const rule = new SecurityRule(marks);
  const [ahead, back, later] = [event("09"), event("03"), event("04")];
  assert.equal(rule.occurrences(NODE, [ahead], at(0)).length, 1);
  assert.equal(rule.occurrences(NODE, [back], at(1)).length, 1);
  // The one from before goes on: the other is the last all the same.
  assert.equal(rule.occurrences(NODE, [{ ...ahead, count: 2 }], at(2)).length, 1);
  const again = new SecurityRule(marks);
  const found = again.occurrences(NODE, [{ ...ahead, count: 2 }, back, later], at(0));
  assert.deepEqual(
    found.map(({ count }) => count),
    [1],
  );
  // The node has restarted, and its list begins anew.
  const afresh = new SecurityRule(marks);
  assert.equal(afresh.occurrences(NODE, [event("01")], at(0)).length, 1);
});

test("an attempt that goes on is not forgotten for newer ones (D22)", () => {
  const rule = new SecurityRule(new Map());
  const id = (at: number): string => String(at).padStart(6, "0");
  const all = Array.from({ length: SECURITY_EVENTS_KEPT }, (_, i) => event(id(i)));
  rule.occurrences(NODE, all, at(0));
  rule.occurrences(NODE, [event(id(0), { count: 2 }), event(id(SECURITY_EVENTS_KEPT))], at(1));
  const [grown] = rule.occurrences(NODE, [event(id(0), { count: 5 })], at(2));
  assert.equal(grown?.count, 3);
});

test("a node that is forgotten and comes again tells of its attempts anew", () => {
  const marks = new Map<string, string>();
  const rule = new SecurityRule(marks);
  rule.occurrences(NODE, [event("01")], at(0));
  assert.deepEqual([...marks], [["n1", "01"]]);
  rule.forget("n1");
  assert.deepEqual([...marks], []);
  assert.equal(rule.occurrences(NODE, [event("01")], at(1)).length, 1);
});

test("of certificates that are no node's the one with the fewest days counts, and an unknown one is not taken for a good one (B-11)", () => {
  const cases: [readonly (number | null)[], number | null | undefined][] = [
    [[], undefined],
    [[80, 20], 20],
    [[80, null], null],
    [[null, 13], 13],
    [[null, 14], null],
    [[null], null],
  ];
  for (const [all, expected] of cases) assert.equal(fewestDays(all), expected, String(all));
  const levels = [undefined, null, 14, 13, 1].map((days) => certificateCondition("authority", days).level);
  assert.deepEqual(levels, ["clear", "unknown", "clear", "warning", "critical"]);
});

test("a minute without a failure has a rate of 0 %, and one byte of drift counts either way (T4)", () => {
  assert.equal(conditionOf("error_spike", {}, { errors: 0, ops: 5, isFull: true, failingRun: 0 }).value, 0);
  assert.equal(conditionOf("bad_metrics", { invalidFields: ["load_avg_1m"] }).threshold, 0);
  assert.equal(conditionOf("quota_drift", { quotaDriftBytes: 1n }).value, 1);
});

test("who is let go by a node that is not the home is free for the home's next answer (M-05)", () => {
  const homes = new Map<string, string>();
  const rule = new QuotaRule([], (username) => homes.get(username));
  const liar = { id: "n2", name: "fs-2" };
  rule.conditions(liar, users({ bob: 1_000n }));
  homes.set("bob", "n1");
  assert.deepEqual(said(rule.conditions(liar, users({}, { usersWithheld: true }))), ["bob clear"]);
  assert.deepEqual(rule.conditions(liar, users({}, { usersWithheld: true })), [], "told once");
});

test("of failures that come in many seconds each is counted in its own, and those told of are not told again (W-03)", () => {
  const window = new FailureWindow();
  assert.equal(window.take(at(0)), undefined);
  for (let second = 0; second < 10; second++) window.add(1, "a", at(100_000 + second * 1_000));
  assert.equal(window.take(at(110_000))?.count, 10);
  assert.equal(window.take(at(110_000)), undefined);
  // Each leaves the window by itself.
  window.add(1, "b", at(100_000 + 15 * 60_000 + 500));
  assert.equal(window.take(at(100_000 + 15 * 60_000 + 500))?.count, 10);
});
