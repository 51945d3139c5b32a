// Which resolved alerts are kept: the newest, and hidden ones do not displace visible ones (D11, W-09).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AlertType } from "#wire/webapi/alert.ts";
import type { Alert } from "./alert.ts";
import { ALERTS_RESOLVED_KEPT, ResolvedAlerts } from "./resolved-alerts.ts";

const NOW_MS = 1_790_000_000_000;
const THIRTY_DAYS_MS = 30 * 86_400_000;
const resolved = (id: string, type: AlertType = "storage_warning"): Alert => ({
  id,
  revision: 2,
  key: `${type}:${id}`,
  type,
  severity: "warning",
  raisedAtMs: NOW_MS,
  raisedCount: 1,
  isRecovery: false,
  resolved: { by: "auto", atMs: 1 },
});
const kept = (): { alerts: ResolvedAlerts; forgotten: string[] } => {
  const forgotten: string[] = [];
  return { alerts: new ResolvedAlerts(({ id }) => forgotten.push(id)), forgotten };
};

test("in whatever order they come, they are forgotten in the order of their ends, each once, 30 days after it (D11)", () => {
  const ends = fc.uniqueArray(fc.nat(50), { maxLength: 20 });
  fc.assert(
    fc.property(ends, (agesMs) => {
      const { alerts, forgotten } = kept();
      for (const ageMs of agesMs) alerts.add(resolved(`${ageMs}`), NOW_MS - ageMs);
      const oldestFirst = agesMs.toSorted((a, b) => b - a);
      for (const ageMs of oldestFirst) {
        alerts.expire(NOW_MS - ageMs + THIRTY_DAYS_MS);
        assert.ok(!forgotten.includes(`${ageMs}`), "exactly 30 days old is kept");
        alerts.expire(NOW_MS - ageMs + THIRTY_DAYS_MS + 1);
        assert.equal(forgotten.at(-1), `${ageMs}`);
      }
      assert.deepEqual(forgotten, oldestFirst.map(String));
    }),
  );
});

test("one more than 1,000 pushes out the oldest, and of those that ended together the first that came (D11)", () => {
  const { alerts, forgotten } = kept();
  for (let at = 0; at < ALERTS_RESOLVED_KEPT; at++) alerts.add(resolved(`${at}`), NOW_MS);
  assert.deepEqual(forgotten, []);
  alerts.add(resolved("next"), NOW_MS);
  assert.deepEqual(forgotten, ["0"]);
  alerts.add(resolved("older"), NOW_MS - 1);
  assert.deepEqual(forgotten, ["0", "older"]);
});

test("however many there are that visitors may not know of, the others are kept (W-09)", () => {
  const { alerts, forgotten } = kept();
  alerts.add(resolved("disk"), NOW_MS);
  for (let at = 0; at <= ALERTS_RESOLVED_KEPT; at++)
    alerts.add(resolved(`${at}`, "quota_exceeded"), NOW_MS + 1);
  assert.deepEqual(forgotten, ["0"]);
});
