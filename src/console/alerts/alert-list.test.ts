// Listed and counted alerts: each filter alone and all together, pages, and what visitors see (D11, W-09).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Audience } from "#base/audience.ts";
import { ALERTS_PAGE_MAX } from "#base/limits.ts";
import type { Alert } from "./alert.ts";
import { type AlertFilter, type AlertPage, listAlerts, summarizeAlerts } from "./alert-list.ts";

const RAISED_MS = 1_790_000_000_000;
const alert = (at: number, more: Partial<Alert> = {}): Alert => ({
  id: String(at).padStart(26, "0"),
  revision: 1,
  key: `k${at}`,
  type: "storage_warning",
  severity: "warning",
  raisedAtMs: RAISED_MS + at * 1_000,
  raisedCount: 1,
  isRecovery: false,
  nodeId: "n1",
  ...more,
});
const over = { by: "auto", atMs: RAISED_MS } as const;
/** Newest first, as they are handed in. */
const ALERTS: readonly Alert[] = [
  alert(5, { severity: "critical" }),
  alert(4, { type: "quota_exceeded", username: "bob@example.com" }),
  alert(3, { nodeId: "n2" }),
  alert(2, { resolved: over }),
  alert(1, { type: "temp_warning", severity: "info", isRecovery: true, resolved: over }),
];
const keys = (filter: AlertFilter, page: AlertPage = {}, audience: Audience = "operator"): string =>
  listAlerts(ALERTS, audience, filter, page)
    .alerts.map(({ key }) => key)
    .join(" ");

test("each filter lets pass what it names, and all together what all let pass (D11)", () => {
  assert.equal(keys({}), "k5 k4 k3 k2 k1");
  assert.equal(keys({ severities: new Set(["critical", "info"]) }), "k5 k1");
  assert.equal(keys({ types: new Set(["quota_exceeded"]) }), "k4");
  assert.equal(keys({ nodeId: "n2" }), "k3");
  assert.equal(keys({ isUnresolved: true }), "k5 k4 k3");
  assert.equal(keys({ isUnresolved: false }), "k5 k4 k3 k2 k1");
  assert.equal(keys({ isResolved: true }), "k2 k1");
  assert.equal(keys({ isResolved: true, isUnresolved: true }), "");
  assert.equal(
    keys({
      severities: new Set(["warning"]),
      types: new Set(["storage_warning"]),
      nodeId: "n1",
      isUnresolved: true,
    }),
    "",
  );
  assert.equal(
    keys({ severities: new Set(["warning"]), types: new Set(["storage_warning"]), nodeId: "n1" }),
    "k2",
  );
});

test("a page begins before an id or a moment and has at most so many; the total counts all that pass (D11)", () => {
  assert.equal(keys({}, { limit: 2 }), "k5 k4");
  assert.equal(keys({}, { limit: 2, beforeId: alert(4).id }), "k3 k2");
  assert.equal(keys({}, { beforeUnix: RAISED_MS / 1_000 + 3 }), "k2 k1");
  assert.equal(listAlerts(ALERTS, "operator", {}, { limit: 1, beforeId: alert(2).id }).total, 5);
  const many = Array.from({ length: ALERTS_PAGE_MAX + 1 }, (_, at) => alert(at));
  const { alerts, total } = listAlerts(many, "operator", {}, {});
  assert.deepEqual([alerts.length, total], [ALERTS_PAGE_MAX, ALERTS_PAGE_MAX + 1]);
});

test("visitors see and count only what is about hardware, and nobody's name in it (W-09)", () => {
  assert.equal(keys({}, {}, "visitor"), "k5 k3 k2 k1");
  assert.equal(listAlerts(ALERTS, "visitor", {}, {}).total, 4);
  assert.doesNotMatch(JSON.stringify(listAlerts(ALERTS, "visitor", {}, {})), /bob/);
});

test("a summary counts what is not over, by severity (D11)", () => {
  assert.deepEqual(summarizeAlerts(ALERTS, "operator"), { critical: 1, warning: 2, info: 0, total: 3 });
  assert.deepEqual(summarizeAlerts(ALERTS, "visitor"), {
    critical: 1,
    warning: 1,
    info: 0,
    total: 2,
    for_operators: 0,
  });
});
