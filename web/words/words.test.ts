// Tests the pages' texts: numbers with units, moments, states with their reason.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import { furtherAlerts, gravestFirst, nothingOpen } from "./alert.ts";
import type { LiveNode } from "./live-node.ts";
import { readable } from "./log-line.ts";
import { longHistoryText } from "./long-history.ts";
import { nextSteps } from "./next-step.ts";
import { byNeed, isUnusualReserve, reasonOf, reserveText } from "./node-state.ts";
import { bytesText, countText, percentText, plainNumber, rateText, UNKNOWN } from "./number.ts";
import {
  inodeConsequence,
  inodePercent,
  inodesText,
  quotaConsequence,
  quotaText,
  quotaToUndo,
} from "./quota.ts";
import { highestOf, lastAndHighest } from "./summary.ts";
import { axisText, clockText, formatAgo, formatDaysUntil, formatSpan } from "./time.ts";

test("counts above 2^53 come as decimal strings and are shown in binary units; what is unknown is a dash", () => {
  assert.equal(bytesText(17_179_869_184), "16 GiB");
  assert.equal(bytesText("18446744073709551615"), "16 EiB");
  assert.equal(bytesText(null), UNKNOWN);
  assert.equal(rateText(null), UNKNOWN);
  assert.equal(percentText(undefined), UNKNOWN);
  assert.deepEqual([999, 999.01, 20_003_200_000].map(percentText), ["999 %", "over 999 %", "over 999 %"]);
  assert.equal(plainNumber(Number.NaN), UNKNOWN);
});

test("a quota that nobody has set says so beside its amount (5.9)", () => {
  const of = (quota_source: "explicit" | "default" | "pending"): string =>
    quotaText({ quota_limit: 17_179_869_184, quota_source });
  assert.deepEqual(
    [of("explicit"), of("default"), of("pending")],
    ["16 GiB", "16 GiB (default)", "16 GiB (pending)"],
  );
});

test("files and folders are told with their limit, and what another limit would do", () => {
  const user = {
    username: "bob@x",
    inode_count: 18,
    inode_limit: 20,
    inode_limit_source: "default",
  } as const;
  assert.equal(inodesText(user), "18 of 20 (default), 90 %");
  assert.equal(inodesText({ ...user, inode_limit_source: "explicit" }), "18 of 20, 90 %");
  assert.equal(inodesText({ inode_count: null, inode_limit: null, inode_limit_source: null }), UNKNOWN);
  assert.equal(inodePercent({ inode_count: 3, inode_limit: 0 }), null);
  assert.equal(inodeConsequence(user, 30), "20 → 30. bob@x can then make 12 more.");
  assert.match(inodeConsequence(user, 10), /^20 → 10\. bob@x has 8 more: nothing is deleted/);
});

test("spans are told in their largest whole unit, just below and at each step", () => {
  assert.deepEqual([59.9, 60, 3_599, 3_600, 86_399, 86_400, -5].map(formatSpan), [
    "59 s",
    "1 min",
    "59 min",
    "1 h",
    "23 h",
    "1 d",
    "0 s",
  ]);
  assert.equal(formatAgo(100, 104), "just now");
  assert.equal(formatAgo(100, 105), "5 s ago");
});

test("days until something is full are told as people count them", () => {
  assert.equal(formatDaysUntil(0.4), "within a day");
  assert.equal(formatDaysUntil(1.2), "in 1 day");
  assert.equal(formatDaysUntil(12), "in 12 days");
  assert.equal(formatDaysUntil(120), "in 4 months");
});

test("what needs an operator leads to where it is ended; a visitor can only look; names are no part of the path", () => {
  const alert = (fields: Partial<AlertRecord>): AlertRecord => fields as AlertRecord;
  const quota = alert({ type: "quota_exceeded", username: "a&b/c@x", node_id: "n/1" });
  assert.deepEqual(nextSteps(quota, true)[0], { label: "Raise quota …", path: "/users?user=a%26b%2Fc%40x" });
  assert.deepEqual(nextSteps(quota, false)[0], { label: "Open", path: "/nodes/n%2F1" });
  assert.equal(
    nextSteps(alert({ type: "storage_warning", node_id: "n1" }), true)[0]?.path,
    "/nodes/n1?tab=users",
  );
  assert.equal(nextSteps(alert({ type: "default_password" }), true)[0]?.path, "/settings");
  assert.equal(nextSteps(alert({ type: "auth_mock" }), true)[0]?.path, "/alerts");
});

test("a node that is away, or takes no writes, offers a restart too; to operators only", () => {
  const away = { type: "node_offline", node_id: "n/1" } as AlertRecord;
  assert.deepEqual(nextSteps(away, true).at(-1), {
    label: "Restart …",
    path: "/actions?do=restart&node=n%2F1",
  });
  assert.equal(nextSteps(away, false).length, 1);
});

test("an alert with a command leads to it first; of several the gravest come first, the newest of them before", () => {
  const lost = { type: "node_restored", node_id: "n1", command: "grove node lost-root x@y" } as AlertRecord;
  assert.deepEqual(
    nextSteps(lost, true).map(({ path }) => path),
    ["/alerts?type=node_restored", "/nodes/n1?tab=users"],
  );
  const alerts = ["warning", "info", "critical", "warning", "critical"].map(
    (severity, index) => ({ id: `${index}`, severity }) as AlertRecord,
  );
  assert.deepEqual(
    gravestFirst(alerts).map(({ id }) => id),
    ["2", "4", "0", "3", "1"],
  );
});

test("undo brings back the quota that was in force, also one that the page had not read yet", () => {
  const read = { quota_limit: 16 * 2 ** 30, quota_source: "default" } as const;
  assert.equal(quotaToUndo(16 * 2 ** 30, read), 0n);
  assert.equal(quotaToUndo(16 * 2 ** 30, { ...read, quota_source: "explicit" }), 16n << 30n);
  // Another operator had set 30 GiB since.
  assert.equal(quotaToUndo(30 * 2 ** 30, read), 30n << 30n);
  assert.equal(quotaToUndo("18446744073709551615", { ...read, quota_source: "explicit" }), (1n << 64n) - 1n);
});

test("what a quota will do is said before: what is free then, and what the disk has above its reserve", () => {
  const bob = { username: "bob@x", quota_limit: 16 * 2 ** 30, used_bytes: Math.round(15.7 * 2 ** 30) };
  const home = { name: "fs-2", disk_free_bytes: 820 * 2 ** 30, reserve_bytes: 20 * 2 ** 30 };
  assert.equal(
    quotaConsequence(bob, 40n << 30n, home),
    "16 GiB → 40 GiB. bob@x then has 24.3 GiB free. fs-2 has 800 GiB above its reserve.",
  );
  assert.match(quotaConsequence(bob, 1n << 40n, home), /But fs-2 has only 800 GiB above its reserve\.$/);
  assert.match(quotaConsequence(bob, 1n << 30n, home), /14\.7 GiB less than bob@x uses: nothing is deleted/);
  assert.match(
    quotaConsequence(bob, 40n << 30n, { ...home, disk_free_bytes: 5 }),
    /down to its reserve and takes no more writes/,
  );
  assert.equal(
    quotaConsequence(bob, 40n << 30n, undefined),
    "16 GiB → 40 GiB. bob@x then has 24.3 GiB free.",
  );
});

test("a line of our own log is read as time, level, event and facts; any other is its text, markup too", () => {
  assert.deepEqual(
    readable(
      '{"level":"warn","time":"2026-11-21T20:07:43.500Z","role":"fileserver","node":"n1","user":"<b>a","size":3,"event":"root_made"}',
    ),
    { ts: 1_795_291_663.5, level: "warn", event: "root made", text: "user=<b>a  size=3" },
  );
  for (const text of ["<script>alert(1)</script>", "{broken", '{"a":1}', "[]", ""]) {
    assert.deepEqual(readable(text), { ts: undefined, level: undefined, event: undefined, text });
  }
});

test("a noun follows its number", () => {
  assert.equal(countText(1, "node"), "1 node");
  assert.equal(countText(0, "node"), "0 nodes");
});

const node = (fields: Partial<LiveNode>): LiveNode =>
  ({
    name: "fs-1",
    status: "online",
    stale: false,
    last_seen: 1_000,
    disk_usage_percent: 10,
    disk_free_bytes: 1_073_741_824,
    reserve_bytes: null,
    cpu_temp_celsius: null,
    storage_failed: false,
    ...fields,
  }) as LiveNode;

test("the reason names the highest limit that is passed, and none at the limit itself (spec 3.2)", () => {
  assert.equal(reasonOf(node({ disk_usage_percent: 80 }), 0), "all figures are in range");
  assert.match(reasonOf(node({ disk_usage_percent: 80.01 }), 0), /above 80 %/);
  assert.match(
    reasonOf(node({ disk_usage_percent: 95.5, disk_full_in_days: 3 }), 0),
    /above 95 %.*full in 3 days/,
  );
  assert.match(reasonOf(node({ cpu_temp_celsius: 75.5 }), 0), /processor at 75.5 °C, above 75 °C/);
  assert.match(reasonOf(node({ status: "offline" }), 1_360), /last answered 6 min ago/);
  assert.match(reasonOf(node({ status: "offline", last_seen: 0 }), 5), /since this console started/);
  const why = { status: "offline", last_seen: 0, poll_error: "nobody may ask it" } as const;
  assert.match(reasonOf(node(why), 5), /started: nobody may ask it/);
  assert.match(reasonOf(node({ ...why, unknown: true }), 5), /not answered this console yet: nobody may/);
});

test("a reserve other than 20 GiB says so, to the byte; what is not known says nothing (spec 1.2)", () => {
  assert.equal(reserveText(21_474_836_480), "20 GiB");
  assert.equal(reserveText(21_474_836_479).endsWith(", not the usual 20 GiB"), true);
  assert.equal(reserveText(1_073_741_824), "1 GiB, not the usual 20 GiB");
  assert.deepEqual([0, "21474836480", null].map(isUnusualReserve), [true, false, false]);
});

test("visitors are told that nothing is open only of what they are told, and how many more there are (spec 5.8.4)", () => {
  assert.equal(nothingOpen({ total: 0 }), "no alert is open");
  assert.equal(nothingOpen({ total: 0, for_operators: 0 }), "no alert about machines or the service is open");
  assert.equal(nothingOpen({ total: 1 }), "nothing but 1 note is open");
  assert.deepEqual([undefined, 0].map(furtherAlerts), [undefined, undefined]);
  assert.equal(furtherAlerts(1), "1 further alert is for operators");
  assert.equal(furtherAlerts(2), "2 further alerts are for operators");
});

test("what needs attention stands first, then names", () => {
  const nodes = [
    node({ name: "b" }),
    node({ name: "a" }),
    node({ name: "c", status: "warning" }),
    node({ name: "d", status: "offline" }),
    node({ name: "e", status: "critical" }),
    node({ name: "f", status: "offline", unknown: true }),
  ];
  assert.deepEqual(
    nodes.sort(byNeed).map(({ name }) => name),
    ["e", "d", "c", "f", "a", "b"],
  );
});

test("a chart's sentence names the last and the highest value, and says when there is none", () => {
  assert.match(
    lastAndHighest("p95 write", [0, 60, 120], [1, 31, 4.1], "ms"),
    /^p95 write 4.1 ms, highest 31 ms at /,
  );
  assert.match(lastAndHighest("p95 write", [0, 60], [1, null], "ms"), /^p95 write –, highest 1 ms/);
  assert.equal(lastAndHighest("p95 write", [0], [null], "ms"), "p95 write: no figures in this hour");
});

test("figures of a time gone by say how exact they are and since when they are kept, and where there are none they say so", () => {
  const reply = { from: 1_000_000, to: 1_086_400, interval_seconds: 180, kept_from: 900_000 };
  assert.equal(longHistoryText(reply, false), "One point is 3 min: means, percentiles at their highest.");
  assert.match(
    longHistoryText({ ...reply, kept_from: 1_040_000 }, false),
    /\. Nothing is kept of the time before .*1970/,
  );
  assert.match(
    longHistoryText({ ...reply, kept_from: 2_000_000 }, true),
    /^Nothing is kept of this time: figures go back to /,
  );
  assert.match(longHistoryText(reply, true), /no node was heard, or the console did not run\.$/);
  assert.match(
    longHistoryText({ ...reply, kept_from: null }, true),
    /^Nothing is kept beyond the last hour yet/,
  );
  assert.match(highestOf("p95", [1, 2, 3], [4, 9, null], "ms"), /^p95 up to 9 ms, .*1970/);
  assert.equal(highestOf("p95", [1], [null], "ms"), "p95: no figures in this time");
});

test("an axis tells the day where the time of day alone would not say which", () => {
  const at = 1_790_000_000;
  assert.equal(axisText(at, 3_600), clockText(at));
  assert.ok(axisText(at, 2 * 86_400).length > clockText(at).length);
  assert.doesNotMatch(axisText(at, 30 * 86_400), /:/);
});
