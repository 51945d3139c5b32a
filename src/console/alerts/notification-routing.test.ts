// Routing of messages: receivers by severity, users only about their own quota (decision D11).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Notice, NotificationAlert } from "./notification.ts";
import { messagesFor } from "./notification-routing.ts";
import type { NotificationSettings, ReceiverSettings } from "./notification-settings.ts";

const alert = (more: Partial<NotificationAlert> = {}): NotificationAlert => ({
  key: "k",
  type: "quota_exceeded",
  status: "firing",
  reason: "raised",
  severity: "warning",
  worst: "warning",
  username: "bob@example.com",
  startsAtMs: 0,
  ...more,
});
const notice = (...alerts: NotificationAlert[]): Notice => ({
  group: { alertname: "quota_exceeded" },
  status: "firing",
  alerts,
  truncated: 0,
});
const receiver = (name: string, kind: string, minSeverity: string): ReceiverSettings =>
  ({ name, kind, minSeverity }) as ReceiverSettings;
const settings = (
  quotaUserReceiver: string | undefined,
  ...receivers: readonly ReceiverSettings[]
): NotificationSettings => ({ receivers, quotaUserReceiver }) as unknown as NotificationSettings;
const ALL = receiver("all", "webhook", "warning");
const WORST = receiver("worst", "webhook", "critical");
const NONE = receiver("none", "webhook", "none");
const to = (of: Notice, with_: NotificationSettings | undefined): string[] =>
  messagesFor(of, with_).map(
    (message) => `${message.receiver} ${message.notice.alerts.length} ${message.notice.status}`,
  );

test("without settings nobody gets anything, and a receiver of nothing neither", () => {
  assert.deepEqual(to(notice(alert()), undefined), []);
  assert.deepEqual(to(notice(alert()), settings(undefined, NONE)), []);
  assert.deepEqual(
    to(notice(alert({ worst: "critical", severity: "critical" })), settings(undefined, NONE)),
    [],
  );
});

test("a receiver of critical alerts gets those that are or were critical, and no message without news in it", () => {
  const was = alert({ worst: "critical" });
  assert.deepEqual(to(notice(alert(), was), settings(undefined, ALL, WORST)), [
    "all 2 firing",
    "worst 1 firing",
  ]);
  assert.deepEqual(to(notice(alert()), settings(undefined, WORST)), []);
  const before = alert({ reason: "standing", worst: "critical" });
  assert.deepEqual(to(notice(alert(), before), settings(undefined, ALL, WORST)), ["all 2 firing"]);
});

test("a message is over when all that it tells is, and nothing was left out of it", () => {
  const over = alert({ status: "resolved", reason: "over", worst: "critical" });
  assert.deepEqual(to(notice(over, alert()), settings(undefined, ALL, WORST)), [
    "all 2 firing",
    "worst 1 resolved",
  ]);
  assert.deepEqual(to({ ...notice(over), truncated: 1 }, settings(undefined, ALL)), ["all 1 firing"]);
});

test("a user is told of news of the own quota, by mail only at what is an address (D11)", () => {
  const mail = receiver("mail", "email", "none");
  const hook = receiver("hook", "webhook", "none");
  const other = alert({ username: "not an address", key: "o" });
  const all = notice(
    alert(),
    other,
    alert({ reason: "repeat" }),
    alert({ reason: "standing" }),
    alert({ type: "ip_mismatch" }),
    alert({ reason: "over", status: "resolved", username: "ann@example.com" }),
  );
  assert.deepEqual(
    messagesFor(all, settings("mail", mail)).map((message) => [message.to, message.notice.status]),
    [
      ["bob@example.com", "firing"],
      ["ann@example.com", "resolved"],
    ],
  );
  const hooked = messagesFor(all, settings("hook", hook));
  assert.deepEqual(
    hooked.map((message) => message.notice.group["username"]),
    ["bob@example.com", "not an address", "ann@example.com"],
  );
  assert.ok(hooked.every((message) => !("to" in message) && message.notice.alerts.length === 1));
  assert.ok(
    hooked.every((message) => message.notice.truncated === 0),
    "nothing was left out for a user",
  );
  const { username: _nobody, ...nameless } = alert();
  assert.deepEqual(messagesFor(notice(nameless), settings("hook", hook)), []);
});
