// The webhook's body against Alertmanager's documented form, and the text of mails.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { ALERT_TYPES } from "#wire/webapi/alert.ts";
import type { Notice, NotificationAlert } from "./notification.ts";
import { mailText, webhookPayload } from "./notification-payload.ts";

/** The fields of webhook_config at prometheus.io/docs/alerting/latest/configuration, in RFC 3339 times. */
const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/);
const labels = z.record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/), z.string());
const status = z.enum(["firing", "resolved"]);
const documented = z.strictObject({
  version: z.literal("4"),
  groupKey: z.string().min(1),
  truncatedAlerts: z.int().min(0),
  status,
  receiver: z.string(),
  groupLabels: labels,
  commonLabels: labels,
  commonAnnotations: labels,
  externalURL: z.string(),
  alerts: z.array(
    z.strictObject({
      status,
      labels: labels.refine((all) => all["alertname"] !== undefined),
      annotations: labels,
      startsAt: time,
      endsAt: time,
      generatorURL: z.string(),
      fingerprint: z.string().regex(/^[0-9a-f]{16}$/),
    }),
  ),
});

const disk: NotificationAlert = {
  key: "storage_warning:n1",
  type: "storage_warning",
  status: "firing",
  reason: "raised",
  severity: "warning",
  worst: "warning",
  nodeId: "n1",
  nodeName: "pi-1",
  value: 90.5,
  threshold: 80,
  startsAtMs: 1_790_000_000_000,
};
const over: NotificationAlert = {
  ...disk,
  status: "resolved",
  reason: "over",
  endsAtMs: 1_790_000_600_000,
  value: 70,
};
const notice = (...alerts: NotificationAlert[]): Notice => ({
  group: { alertname: "storage_warning" },
  status: alerts.some((alert) => alert.status === "firing") ? "firing" : "resolved",
  alerts,
  truncated: 0,
});

test("a message says of its alerts what their records say, numbers and all (D11)", () => {
  const quota: NotificationAlert = {
    ...disk,
    key: "quota_exceeded:bob",
    type: "quota_exceeded",
    username: "bob",
    value: 97,
    detail: { used_bytes: 16_664_473_108, quota_bytes: 17_179_869_184 },
  };
  const says = "bob used 97 % of 16 GiB (15.5 GiB).";
  assert.equal(webhookPayload(notice(quota), "ops", "").alerts[0]?.annotations["description"], says);
  assert.ok(mailText(notice(quota), "").text.includes(says));
});

test("a message has every field of Alertmanager's webhook, version 4, and no other (D11)", () => {
  const payload = webhookPayload(
    notice(disk, { ...over, key: "storage_warning:n2", nodeId: "n2" }),
    "ops",
    "https://c/",
  );
  documented.parse(JSON.parse(JSON.stringify(payload)));
  assert.equal(payload.groupKey, '{}:{alertname="storage_warning"}');
  assert.deepEqual(payload.commonLabels, {
    alertname: "storage_warning",
    severity: "warning",
    instance: "pi-1",
    node_name: "pi-1",
  });
  const [firing, resolved] = payload.alerts;
  assert.equal(firing?.endsAt, "0001-01-01T00:00:00Z");
  assert.equal(firing.startsAt, "2026-09-21T14:13:20.000Z");
  assert.equal(resolved?.endsAt, "2026-09-21T14:23:20.000Z");
  assert.equal(firing.annotations["summary"], "pi-1 is 90.5 % full");
  assert.match(resolved.annotations["summary"] ?? "", /room again/);
  assert.match(resolved.annotations["description"] ?? "", /down to 70 %, below its limit of 80 %/);
});

test("the fingerprint and the group's key stay the same when an alert becomes worse or is over", () => {
  const [warning, critical, end] = [disk, { ...disk, severity: "critical" as const }, over].map((alert) =>
    webhookPayload(notice(alert), "ops", ""),
  );
  assert.equal(warning?.alerts[0]?.fingerprint, critical?.alerts[0]?.fingerprint);
  assert.equal(warning?.alerts[0]?.fingerprint, end?.alerts[0]?.fingerprint);
  assert.equal(warning?.groupKey, end?.groupKey);
});

const anyAlert: fc.Arbitrary<NotificationAlert> = fc
  .record(
    {
      key: fc.string(),
      type: fc.constantFrom(...ALERT_TYPES),
      reason: fc.constantFrom("raised", "worse", "flapping", "over", "repeat", "standing"),
      severity: fc.constantFrom("warning", "critical"),
      nodeId: fc.string(),
      nodeName: fc.string({ unit: "binary" }),
      username: fc.string({ unit: "binary" }),
      value: fc.double({ noNaN: true }),
      threshold: fc.double({ noNaN: true }),
      startsAtMs: fc.integer({ min: 0, max: 4e12 }),
    },
    { requiredKeys: ["key", "type", "reason", "severity", "startsAtMs"] },
  )
  .map((alert) => ({
    ...alert,
    worst: alert.severity,
    ...(alert.reason === "over"
      ? { status: "resolved" as const, endsAtMs: alert.startsAtMs + 1 }
      : { status: "firing" as const }),
  }));

test("whatever an alert says, the message keeps its form and the mail its one-line subject", () => {
  fc.assert(
    fc.property(fc.array(anyAlert, { minLength: 1, maxLength: 5 }), (alerts) => {
      const payload = webhookPayload(notice(...alerts), "ops", "");
      documented.parse(JSON.parse(JSON.stringify(payload)));
      const { subject, text } = mailText(notice(...alerts), "");
      assert.doesNotMatch(subject, /\p{Cc}/u);
      assert.ok(subject.length <= 200 && text.length > 0);
    }),
    { numRuns: 500 },
  );
});

test("a mail says what is wrong, since when, and where to look", () => {
  const { subject, text } = mailText(
    notice({ ...disk, severity: "critical" }, over),
    "https://console.example.net/",
  );
  assert.equal(subject, "[grove critical] pi-1 is 90.5 % full (and 1 more)");
  assert.match(text, /\[critical\] pi-1 is 90\.5 % full\n/);
  assert.match(text, /\(storage_warning:n1, since 2026-09-21 14:13 UTC\)/);
  assert.match(text, /over at 2026-09-21 14:23 UTC/);
  assert.match(text, /https:\/\/console\.example\.net\/\n$/);
  assert.equal(mailText(notice(over), "").subject, "[grove over] pi-1 has room again");
});

test("the end of an absence says for how long, and the end of a happening that it was one (D11)", () => {
  const away = mailText(notice({ ...over, key: "node_offline:n1", type: "node_offline" }), "");
  assert.equal(away.subject, "[grove over] pi-1 is online again");
  assert.match(away.text, /answers again after 10 min/);
  const setBack = { ...over, type: "node_offline" as const, endsAtMs: over.startsAtMs - 3_600_000 };
  assert.match(mailText(notice(setBack), "").text, /answers again after 0 s/, "of a clock that was set back");
  const tried = mailText(notice({ ...over, key: "mock_token:n1", type: "mock_token" }), "");
  assert.equal(tried.subject, "[grove over] Over: Somebody tried a mock token on pi-1");
});

test("the end of an alert about a node that has left the cluster does not say that all is well", () => {
  const gone = { ...over, detail: { gone: 1 } };
  for (const alert of [gone, { ...gone, key: "node_offline:n1", type: "node_offline" as const }]) {
    const { subject, text } = mailText(notice(alert), "");
    assert.match(subject, /^\[grove over\] No longer watched: pi-1 is (?:70 % full|offline)$/);
    assert.match(text, /pi-1 is not in the cluster any more\. Last known: /);
    assert.doesNotMatch(text, /has room again|answers again/);
  }
});

test("a flapping alert says that it flaps and that nothing more is told for now (D11)", () => {
  const { subject, text } = mailText(notice({ ...disk, reason: "flapping" }), "");
  assert.match(subject, /Flapping: pi-1/);
  assert.match(text, /more than 3 times within 30 minutes; nothing more is told/);
});

test("a mail says how many more stand as before, and where to look", () => {
  const cut = { ...notice(disk), truncated: 3 };
  assert.match(
    mailText(cut, "https://console").text,
    /\n\n3 more of the same kind stand as before\.\n\nhttps:\/\/console\n$/,
  );
  assert.doesNotMatch(mailText(notice(disk), "").text, /more of the same kind|https/);
});

test("a group's key names its labels in one order, whatever the order in which they are kept", () => {
  const key = (group: Readonly<Record<string, string>>): string =>
    webhookPayload({ ...notice(disk), group }, "ops", "").groupKey;
  assert.equal(key({ b: "2", a: "1" }), '{}:{a="1", b="2"}');
  assert.equal(key({ a: "1", b: "2" }), '{}:{a="1", b="2"}');
});
