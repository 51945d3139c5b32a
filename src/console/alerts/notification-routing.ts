// Routes messages: to receivers by severity, and to users about their own quota (decision D11).
import { groupNameOf } from "#security/policy/group.ts";
import type { Notice, NotificationAlert } from "./notification.ts";
import type { QueuedNotification } from "./notification-queue.ts";
import type { NotificationSettings, ReceiverSettings } from "./notification-settings.ts";

type Message = Omit<QueuedNotification, "seq" | "createdWallMs">;

/** Reasons that are news, as opposed to repeats and context. */
const NEWS: readonly NotificationAlert["reason"][] = ["raised", "worse", "flapping", "over"];
const MAIL_ADDRESS = /^[^\s@<>,;"\\]{1,64}@[^\s@<>,;"\\]{1,255}$/;

/** True for a username that a mail can go to. */
export function isMailAddress(username: string): boolean {
  return MAIL_ADDRESS.test(username);
}

/** The messages of one notice. Receivers without news in it get none. */
export function messagesFor(notice: Notice, settings: NotificationSettings | undefined): Message[] {
  if (settings === undefined) return [];
  const messages = settings.receivers.flatMap((receiver) => messageTo(receiver, notice));
  const hook = settings.receivers.find(({ name }) => name === settings.quotaUserReceiver);
  return hook === undefined ? messages : [...messages, ...userMessages(hook, notice)];
}

function messageTo({ name, minSeverity }: ReceiverSettings, notice: Notice): Message[] {
  if (minSeverity === "none") return [];
  const alerts = notice.alerts.filter(({ worst }) => minSeverity === "warning" || worst === "critical");
  if (!alerts.some(({ reason }) => reason !== "standing")) return [];
  const isFiring = notice.truncated > 0 || alerts.some(({ status }) => status === "firing");
  return [{ receiver: name, notice: { ...notice, alerts, status: isFiring ? "firing" : "resolved" } }];
}

/** One message for each user whose quota is news. */
function userMessages(hook: ReceiverSettings, notice: Notice): Message[] {
  return notice.alerts.flatMap((alert) => {
    const { type, username, reason, status } = alert;
    if (type !== "quota_exceeded" || username === undefined || !NEWS.includes(reason)) return [];
    if (hook.kind === "email" && (!isMailAddress(username) || groupNameOf(username) !== undefined)) return [];
    const group = { alertname: type, username };
    return [
      {
        receiver: hook.name,
        ...(hook.kind === "email" ? { to: username } : {}),
        notice: { group, status, alerts: [alert], truncated: 0 },
      },
    ];
  });
}
