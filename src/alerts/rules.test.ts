// Shows both sides of every threshold of the rules, and that what is not known changes nothing (spec 3.1, 3.3, 8; D11, D24).
import assert from "node:assert/strict";
import { test } from "node:test";
import { RESTART_EXPLAINED_MS } from "#base/limits.ts";
import type { Condition, Moment } from "./condition.ts";
import { type NodeGauges, nodeConditions, offlineCondition } from "./node-rules.ts";
import { QuotaWatch, quotaLevel, type UserReadings } from "./quota-watch.ts";
import { RestartWatch } from "./restart-watch.ts";
import { FailureWindow, type ReportedEvent, SecurityWatch } from "./security-watch.ts";

const NODE = { id: "n1", name: "fs-1" };
const HEALTHY: NodeGauges = {
  diskUsagePercent: 40,
  diskFreeBytes: 600n,
  diskTotalBytes: 1_000n,
  cpuTempCelsius: 45,
  certDaysLeft: 60,
  clockSkewMs: 0,
  quotaDriftBytes: 0n,
  storageFailed: false,
  damagedFileCount: 0,
  authMock: false,
  invalidFields: [],
};
const QUIET = { errors: 0, ops: 0, isFull: true };
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

test("error_spike: above 5 and 20 % of at least 20 operations (T4)", () => {
  const level = (errors: number, ops: number, isFull = true): string =>
    conditionOf("error_spike", {}, { errors, ops, isFull }).level;
  assert.deepEqual(
    [level(19, 19), level(1, 1), level(20, 20), level(1, 20), level(50, 1_000), level(51, 1_000)],
    ["unknown", "unknown", "critical", "hold", "hold", "warning"],
  );
  assert.deepEqual([level(200, 1_000), level(201, 1_000), level(1, 21)], ["warning", "critical", "clear"]);
  assert.equal(level(0, 0), "clear", "a whole minute without a failure");
  assert.equal(level(0, 0, false), "unknown", "less than a minute is no minute");
  assert.equal(conditionOf("error_spike", {}, { errors: 500, ops: 20, isFull: true }).value, 100);
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

test("drift either way, damage, a failed disk, mock mode and invalid fields are conditions as soon as there are any (D11, F-05)", () => {
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
  usersTruncated: false,
  usersWithheld: false,
  ...more,
});
const said = (conditions: readonly Condition[]): string[] =>
  conditions.map(({ username, level }) => `${username} ${level}`);

test("quota conditions are made for users near the edge, and once more when they no longer are", () => {
  const watch = new QuotaWatch([]);
  const at960 = watch.conditions(NODE, users({ far: 10n, near: 960n, full: 1_000n, held: 950n }));
  assert.deepEqual(said(at960), ["near warning", "full critical", "held hold"]);
  assert.deepEqual(at960[0]?.detail, { used_bytes: 960, quota_bytes: 1_000 });
  assert.deepEqual(said(watch.conditions(NODE, users({ far: 10n, near: 949n, full: 1_000n, held: 950n }))), [
    "full critical",
    "held hold",
    "near clear",
  ]);
  assert.deepEqual(said(watch.conditions(NODE, users({ far: 10n, near: 949n, full: 1_000n, held: 950n }))), [
    "full critical",
    "held hold",
  ]);
});

test("a user who is gone is clear; one whom the node does not list, or may not tell of, is unknown", () => {
  const watch = new QuotaWatch([{ username: "bob", nodeId: "n1" }]);
  assert.deepEqual(watch.conditions(NODE, users({}, { usersWithheld: true })), []);
  assert.deepEqual(watch.conditions(NODE, users({}, { usersTruncated: true })), []);
  assert.deepEqual(said(watch.conditions(NODE, users({}))), ["bob clear"]);
  assert.deepEqual(watch.conditions(NODE, users({})), []);
});

test("a user whom two nodes claim is counted on the first, until that one lets go (F-05)", () => {
  const watch = new QuotaWatch([]);
  const other = { id: "n2", name: "fs-2" };
  assert.equal(watch.conditions(NODE, users({ bob: 960n })).length, 1);
  assert.deepEqual(watch.conditions(other, users({ bob: 2_000n })), []);
  assert.deepEqual(said(watch.conditions(NODE, users({ bob: 1n }))), ["bob clear"]);
  assert.deepEqual(said(watch.conditions(other, users({ bob: 2_000n }))), ["bob critical"]);
});

test("a user is counted at home: no other node raises, keeps or ends the alert of one of them (F-05)", () => {
  const homes = new Map<string, string>();
  const watch = new QuotaWatch([], (username) => homes.get(username));
  const liar = { id: "n2", name: "fs-2" };
  // As long as nobody knows the home, the first who claims the user counts.
  assert.deepEqual(said(watch.conditions(liar, users({ bob: 1_000n }))), ["bob critical"]);
  homes.set("bob", "n1");
  assert.deepEqual(said(watch.conditions(NODE, users({ bob: 960n }))), ["bob warning"]);
  assert.deepEqual(watch.conditions(liar, users({ bob: 1_000n })), []);
  assert.deepEqual(watch.conditions(liar, users({ bob: 1n })), []);
  assert.deepEqual(said(watch.conditions(NODE, users({ bob: 10n }))), ["bob clear"]);
  assert.deepEqual(watch.conditions(liar, users({ bob: 1_000n })), [], "and it never begins again");
});

test("an alert that another node has raised ends by what the home says, or by that node's next answer", () => {
  const homes = new Map<string, string>();
  const watch = new QuotaWatch([], (username) => homes.get(username));
  const liar = { id: "n2", name: "fs-2" };
  watch.conditions(liar, users({ bob: 1_000n, ann: 1_000n }));
  homes.set("bob", "n1").set("ann", "n3");
  const [home] = watch.conditions(NODE, users({ bob: 10n }));
  assert.deepEqual([home?.username, home?.level, home?.nodeId], ["bob", "clear", "n1"]);
  assert.deepEqual(said(watch.conditions(liar, users({}, { usersWithheld: true }))), ["ann clear"]);
});

test("a restart is seen by its time or the boot, once, and not when somebody worked on the node (D24)", () => {
  const watch = new RestartWatch();
  const life = (lastRestartUnix: number | null, bootId: string | null = "b1") => ({
    lastRestartUnix,
    bootId,
  });
  assert.equal(watch.observe(NODE, life(100), at(0)), undefined, "the first look knows of nothing before");
  assert.equal(watch.observe(NODE, life(100), at(1)), undefined);
  assert.deepEqual(watch.observe(NODE, life(200), at(2))?.detail, {});
  assert.equal(watch.observe(NODE, life(null, null), at(3)), undefined, "unknown is no other life");
  assert.equal(watch.observe(NODE, life(200), at(4)), undefined);
  assert.deepEqual(watch.observe(NODE, life(300, "b2"), at(5))?.detail, { machine: "restarted" });
  watch.touched("n1", at(10));
  assert.equal(watch.observe(NODE, life(400, "b2"), at(10 + RESTART_EXPLAINED_MS)), undefined);
  assert.ok(watch.observe(NODE, life(500, "b2"), at(11 + RESTART_EXPLAINED_MS)) !== undefined);
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
  const watch = new SecurityWatch(marks);
  const [first] = watch.occurrences(NODE, [event("01")], at(0));
  assert.deepEqual(
    [first?.key, first?.level, first?.username, first?.count],
    ["ip_mismatch:bob@example.com", "warning", "bob@example.com", 1],
  );
  assert.deepEqual(watch.occurrences(NODE, [event("01")], at(1)), []);
  assert.equal(watch.occurrences(NODE, [event("01", { count: 5 })], at(2))[0]?.count, 4);
  const [mock] = watch.occurrences(NODE, [event("02", { type: "mock_token", username: undefined })], at(3));
  assert.deepEqual([mock?.key, mock?.level, mock?.username], ["mock_token:n1", "critical", undefined]);
  const again = new SecurityWatch(marks);
  assert.deepEqual(again.occurrences(NODE, [event("01", { count: 5 }), event("02")], at(0)), []);
  assert.equal(again.occurrences(NODE, [event("03")], at(1)).length, 1);
});

test("failed sign-ins are an alert from the tenth within 15 minutes on, one for all that came since (D-03)", () => {
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
