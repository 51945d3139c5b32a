// What the pages say in words: numbers with units, moments, states with their reason.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AlertRecord } from "#webapi/alert.ts";
import type { LiveNode } from "../live/connection.ts";
import { nextStep } from "./next-step.ts";
import { byNeed, reasonOf } from "./node-state.ts";
import { bytesText, countText, percentText, plainNumber, rateText, UNKNOWN } from "./number.ts";
import { lastAndHighest } from "./summary.ts";
import { formatAgo, formatDaysUntil, formatSpan } from "./time.ts";

test("counts above 2^53 come as decimal strings and are shown in binary units; what is unknown is a dash", () => {
  assert.equal(bytesText(17_179_869_184), "16 GiB");
  assert.equal(bytesText("18446744073709551615"), "16 EiB");
  assert.equal(bytesText(null), UNKNOWN);
  assert.equal(rateText(null), UNKNOWN);
  assert.equal(percentText(undefined), UNKNOWN);
  assert.equal(plainNumber(Number.NaN), UNKNOWN);
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
  assert.deepEqual(nextStep(quota, true), { label: "Raise quota …", path: "/users?q=a%26b%2Fc%40x" });
  assert.deepEqual(nextStep(quota, false), { label: "Open", path: "/nodes/n%2F1" });
  assert.equal(nextStep(alert({ type: "storage_warning", node_id: "n1" }), true).path, "/nodes/n1?tab=users");
  assert.equal(nextStep(alert({ type: "default_password" }), true).path, "/settings");
  assert.equal(nextStep(alert({ type: "auth_mock" }), true).path, "/alerts");
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
});

test("what needs attention stands first, then names", () => {
  const nodes = [
    node({ name: "b" }),
    node({ name: "a" }),
    node({ name: "c", status: "warning" }),
    node({ name: "d", status: "offline" }),
    node({ name: "e", status: "critical" }),
  ];
  assert.deepEqual(
    nodes.sort(byNeed).map(({ name }) => name),
    ["e", "d", "c", "a", "b"],
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
