// Tests the texts: numbers, units and limits for operators, nothing about users for visitors (D11, W-09).
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import fc from "fast-check";
import { ALERT_TYPES, type AlertType, alertRecord, SEVERITIES } from "#wire/webapi/alert.ts";
import type { Alert } from "./alert.ts";
import { publicRecordOf, recordOf } from "./alert-record.ts";
import { ALERT_VISIBILITY, isCounted, isPublic } from "./alert-visibility.ts";

const BARE: Alert = {
  id: "01K5YDWV000000000000000000",
  revision: 1,
  key: "k",
  type: "storage_warning",
  severity: "warning",
  raisedAtMs: 1_790_000_000_000,
  raisedCount: 1,
  isRecovery: false,
};

test("sentences name the node, the number, its unit and its limit", () => {
  const said = (alert: Partial<Alert>): string =>
    recordOf({ ...BARE, nodeId: "n1", nodeName: "fs-pi4", ...alert }).message;
  assert.equal(
    said({
      value: 91.24,
      threshold: 80,
      detail: { free_bytes: 1_209_462_790_553, total_bytes: 13_194_139_533_312, full_in_days: 12 },
    }),
    "The disk of fs-pi4 is 91.2 % full, above its limit of 80 %; 1.1 TiB of 12 TiB are free. At this pace it is full in 12 days.",
  );
  assert.equal(
    said({ type: "cert_expiring", nodeName: "the console", value: 5 }),
    "The certificate of the console ends in 5 days. One that the cluster's authority issued is renewed by itself: find out why this one is not. Renew one of another authority there.",
  );
  assert.equal(
    said({
      type: "quota_exceeded",
      username: "bob@example.com",
      value: 97,
      detail: { used_bytes: 16_664_473_108, quota_bytes: 17_179_869_184, trash_bytes: 4_402_341_478 },
    }),
    "bob@example.com used 97 % of 16 GiB (15.5 GiB, of which 4.1 GiB are trash).",
  );
  assert.equal(
    said({ type: "error_spike", value: 12, threshold: 5, detail: { errors: 36, operations: 300 } }),
    "12 % of the operations of fs-pi4 in the last minute failed (36 of 300); the limit is 5 %.",
  );
  assert.equal(
    said({ type: "node_offline", severity: "critical", detail: { last_seen: 1_790_000_000, users: 3 } }),
    "fs-pi4 has not answered for more than 30 s; its last answer came at 2026-09-21 14:13:20 UTC. 3 users cannot reach their files.",
  );
  assert.equal(
    said({ type: "host_key_changed", detail: { fingerprint: "SHA256:abc" } }),
    "fs-pi4 showed another SSH host key than the one that is pinned (SHA256:abc); nothing was run there. Find out why before you pin the new one.",
  );
  assert.equal(
    said({ type: "action_failed", detail: { action: "Restart", reason: "no answer in 60 s" } }),
    "Restart failed on fs-pi4: no answer in 60 s. This ends once the same succeeds there.",
  );
  assert.equal(
    said({
      type: "snapshot_reset",
      detail: {
        file: "admin_alerts.json",
        kept: "admin_alerts.json.corrupt-1",
        began: "that of an hour ago",
      },
    }),
    "admin_alerts.json could not be read and was set aside as admin_alerts.json.corrupt-1; the console began that of an hour ago.",
  );
  const reserve = { type: "storage_reserve", severity: "critical" } as const;
  assert.equal(
    said({ ...reserve, detail: { usable_bytes: 0, reserve_bytes: 21_474_836_480, full_in_days: 0 } }),
    "fs-pi4 refuses uploads now: its disk is down to the reserve of 20 GiB that it keeps free. Reading and deleting go on. Free space there, or give it a larger disk.",
  );
  assert.equal(
    said({
      ...reserve,
      detail: { usable_bytes: 5_368_709_120, reserve_bytes: 21_474_836_480, full_in_days: 2.5 },
    }),
    "fs-pi4 has 5 GiB left above the reserve of 20 GiB that it keeps free, and refuses uploads once that is gone. At this pace that is in 3 days.",
  );
  assert.equal(
    said({ type: "inodes_low", value: 2.5, threshold: 3, detail: { free_inodes: 25_000 } }),
    "The filesystem of fs-pi4 has 2.5 % of its inodes free (25,000), below its limit of 3 %. Without any it takes no new file above 64 KiB, however many bytes are free: remove small files beside Grove's, or move it to a filesystem with more inodes.",
  );
  assert.equal(
    said({ value: 80.01, threshold: 80 }).includes("is 80.01 % full"),
    true,
    "a limit that is passed does not look kept",
  );
});

test("visitors learn of a silent node, not how many users it has; the same sentence without it", () => {
  const record = publicRecordOf({
    ...BARE,
    type: "node_offline",
    nodeId: "n1",
    nodeName: "fs-pi4",
    detail: { last_seen: 0, users: 3 },
  });
  assert.equal(
    record?.message,
    "fs-pi4 has not answered for more than 30 s; it never has since the console started.",
  );
});

test("visitors see exactly these types, and never one with a user (spec 5.8.4, D22)", () => {
  assert.deepEqual(
    ALERT_TYPES.filter((type) => isPublic({ ...BARE, type })),
    [
      "node_offline",
      "node_online",
      "storage_warning",
      "temp_warning",
      "error_spike",
      "service_restart",
      "cert_expiring",
      "clock_skew",
      "quota_drift",
      "corruption",
      "storage_failed",
      "storage_reserve",
      "inodes_low",
      "metaserver_offline",
      "snapshot_reset",
      "bad_metrics",
    ],
  );
  assert.deepEqual(
    ALERT_TYPES.filter((type) => isCounted({ ...BARE, type })),
    ["auth_mock", "default_password", "action_failed"],
  );
  for (const type of ALERT_TYPES) {
    for (const about of [{ username: "bob@example.com" }, { isOfUsers: true } as const]) {
      assert.equal(publicRecordOf({ ...BARE, type, ...about }), undefined);
      assert.equal(isCounted({ ...BARE, type, ...about }), false);
    }
  }
});

test("docs/reference.md lists the types that visitors do not see, with the reason that the code has (D22)", async () => {
  const text = await readFile(new URL("../../../docs/reference.md", import.meta.url), "utf8");
  const rows = [
    ...text.matchAll(/^\| (`[a-z_`, ]+`) \| (users|an attempt|an opening): .* \| (yes|no) \|$/gm),
  ];
  const listed = rows.flatMap(([, types = "", reason = "", counted]) =>
    [...types.matchAll(/[a-z_]+/g)].map(([type]) => `${type} ${reason.split(" ").at(-1)} ${counted}`),
  );
  const inCode = ALERT_TYPES.flatMap((type) => {
    const { hidden } = ALERT_VISIBILITY[type];
    return hidden === undefined ? [] : [`${type} ${hidden} ${isCounted({ ...BARE, type }) ? "yes" : "no"}`];
  });
  assert.deepEqual(listed.toSorted(), inCode.toSorted());
});

test("of damage and drift visitors learn that there is some, and no number of files or bytes (spec 5.8.4)", () => {
  const said = (type: AlertType, value: number): unknown =>
    publicRecordOf({ ...BARE, type, nodeId: "n1", nodeName: "fs-pi4", value, threshold: 0 });
  for (const type of ["corruption", "quota_drift"] as const)
    assert.deepEqual(said(type, 7), said(type, 4_242));
  assert.match(JSON.stringify(said("corruption", 7)), /fs-pi4 has some damaged files/);
  assert.match(JSON.stringify(said("quota_drift", 7)), /"Counters of fs-pi4 are off"/);
});

/** Values of users, addresses and operators that visitors' answers must not contain. */
const CANARY = "canary@example.com";
const anyAlert: fc.Arbitrary<Alert> = fc
  .record({
    type: fc.constantFrom(...ALERT_TYPES),
    severity: fc.constantFrom(...SEVERITIES),
    isRecovery: fc.boolean(),
    value: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }), { nil: undefined }),
    threshold: fc.option(fc.integer(), { nil: undefined }),
    isResolved: fc.boolean(),
  })
  .map(({ type, severity, isRecovery, value, threshold, isResolved }) => ({
    ...BARE,
    type,
    severity,
    isRecovery,
    nodeId: "n1",
    nodeName: "fs-1",
    ...(value === undefined ? {} : { value }),
    ...(threshold === undefined ? {} : { threshold }),
    ...(isResolved ? { resolved: { by: "operator" as const, atMs: BARE.raisedAtMs } } : {}),
  }));

test("every alert has a text, its record is what the schema says, and visitors' records do not change with what they may not know (W-09)", () => {
  fc.assert(
    fc.property(anyAlert, (alert) => {
      const told: Alert = {
        ...alert,
        acked: { by: CANARY, atMs: BARE.raisedAtMs },
        detail: Object.fromEntries(
          [
            "users",
            "used_bytes",
            "quota_bytes",
            "trash_bytes",
            "ip_seen",
            "ip_bound",
            "address",
            "fields",
            "reason",
            "file",
          ].map((name) => [name, name.endsWith("bytes") ? 4_242_424_242 : CANARY]),
        ),
      };
      for (const record of [recordOf(alert), recordOf(told)]) {
        alertRecord.parse(record);
        assert.ok(record.title !== "" && record.message.length > 10);
        assert.doesNotMatch(`${record.title}${record.message}`, /undefined|NaN|null|\[object/);
      }
      assert.deepEqual(publicRecordOf(told), publicRecordOf(alert));
      assert.equal(JSON.stringify(publicRecordOf(told) ?? {}).includes(CANARY), false);
    }),
    { numRuns: 2_000 },
  );
});

test("sentences say what is known and leave out what is not, in the number of their nouns (D11)", () => {
  const said = (alert: Partial<Alert>): { title: string; message: string } => {
    const { title, message } = recordOf({ ...BARE, nodeId: "n1", nodeName: "fs-1", ...alert });
    return { title, message };
  };
  assert.deepEqual(said({ type: "service_restart", detail: { machine: "restarted" } }), {
    title: "The machine of fs-1 restarted",
    message: "The machine of fs-1 restarted, and nobody had asked for it.",
  });
  assert.match(
    said({ type: "bad_metrics", value: 1 }).message,
    /^1 field of what fs-1 reports is missing .* counts as/,
  );
  assert.match(
    said({ type: "bad_metrics", value: 2 }).message,
    /^2 fields of what fs-1 reports are missing .* count as/,
  );
  const free = { free_bytes: "9223372036854775808", total_bytes: "18446744073709551615" };
  assert.match(said({ value: 81, threshold: 80, detail: free }).message, /; 8 EiB of 16 EiB are free/);
  const back = (away_seconds: number): string =>
    said({ type: "node_online", severity: "info", isRecovery: true, detail: { away_seconds } }).message;
  assert.match(back(59), / 59 s/);
  assert.match(back(60), / 1 min/);
  assert.match(back(7_200), / 2 h/);
  assert.match(back(172_799), / 48 h/);
  assert.match(back(172_800), / 2 days/);
});
