// Shows when a MetaServer counts as offline, the severity, and that visitors do not see its address.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Alert } from "./alert.ts";
import { publicRecordOf, recordOf } from "./alert-record.ts";
import { type MetaServerReading, metaServerConditions } from "./metaserver-rule.ts";

const reading = (address: string, overrides: Partial<MetaServerReading> = {}): MetaServerReading => ({
  address,
  isLate: false,
  isOffline: false,
  lastSeenWallMs: 1_790_000_000_999,
  certDaysLeft: null,
  authorityDaysLeft: null,
  reason: undefined,
  ...overrides,
});
const late = { isLate: true, reason: "no full answer within 3 s" } as const;
const offline = { ...late, isOffline: true } as const;
const conditions = (readings: readonly MetaServerReading[], standing: readonly string[] = []) =>
  metaServerConditions(readings, 1_790_000_100, { sinceUnix: () => 1_790_000_000, standing });

test("late is unknown, offline is critical, and a warning while another one answers", () => {
  const levels = (...readings: readonly MetaServerReading[]): string[] =>
    conditions(readings).map(({ key, level }) => `${key} ${level}`);
  assert.deepEqual(levels(reading("a:50050", late)), ["metaserver_offline:a:50050 unknown"]);
  assert.deepEqual(levels(reading("a:50050", offline)), ["metaserver_offline:a:50050 critical"]);
  assert.deepEqual(levels(reading("a:50050", offline), reading("b:50050")), [
    "metaserver_offline:a:50050 warning",
    "metaserver_offline:b:50050 clear",
  ]);
  assert.deepEqual(levels(reading("a:50050", offline), reading("b:50050", late)), [
    "metaserver_offline:a:50050 critical",
    "metaserver_offline:b:50050 unknown",
  ]);
});

test("a last answer that an earlier console heard is kept while it stays away", () => {
  const [condition] = conditions([reading("a:50050", { ...offline, lastSeenWallMs: 0 })]);
  assert.equal(condition?.detail?.["last_seen"], 1_790_000_000);
});

test("what stands of an address that is not watched any more is over; other alerts are left alone", () => {
  const found = conditions([reading("a:50050")], ["metaserver_offline:b:50050", "node_offline:n1"]);
  assert.deepEqual(
    found.map(({ key, level, detail }) => [key, level, detail]),
    [
      ["metaserver_offline:a:50050", "clear", { address: "a:50050", away_seconds: 100 }],
      ["metaserver_offline:b:50050", "clear", { address: "b:50050", unwatched: 1 }],
    ],
  );
});

test("the sentence says what works meanwhile and what does not; visitors read it without address and reason (D22)", () => {
  const alert = (others: number): Alert => ({
    id: "01K5YDWV000000000000000000",
    revision: 1,
    raisedAtMs: 1_790_000_000_000,
    raisedCount: 1,
    isRecovery: false,
    severity: "critical",
    key: "metaserver_offline:10.9.8.7:50050",
    type: "metaserver_offline",
    detail: {
      address: "10.9.8.7:50050",
      others,
      last_seen: 1_790_000_000,
      reason: "the connection was refused",
    },
  });
  const { title, message } = recordOf(alert(0));
  assert.equal(title, "The MetaServer 10.9.8.7:50050 is offline");
  assert.equal(
    message,
    "The MetaServer 10.9.8.7:50050 has not answered for more than 30 s; its last answer came at 2026-09-21 14:13:20 UTC: the connection was refused. Files go on being read and written on nodes that clients know. New users, clients that do not know the way yet, and nodes that join or renew a certificate wait until it is back.",
  );
  assert.match(
    recordOf(alert(1)).message,
    /Another MetaServer answers: clients and nodes that know both go on/,
  );
  const seen = publicRecordOf(alert(0));
  assert.equal(seen?.key, "metaserver_offline");
  assert.match(
    seen?.message ?? "",
    /^A MetaServer has not answered for more than 30 s; .* UTC\. Files go on/,
  );
  assert.doesNotMatch(JSON.stringify(seen), /10\.9\.8\.7|refused/);
  const over = (detail: Alert["detail"]): string =>
    recordOf({ ...alert(0), isRecovery: true, severity: "info", ...(detail === undefined ? {} : { detail }) })
      .message;
  assert.equal(over({ address: "a:1", away_seconds: 90 }), "The MetaServer a:1 answers again after 2 min.");
  assert.match(
    over({ address: "a:1", unwatched: 1 }),
    /is not among those that the console was told to watch/,
  );
});
