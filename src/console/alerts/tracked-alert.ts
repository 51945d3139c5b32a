// The notification state of one key, and its form in messages.
import { z } from "zod";
import { ALERT_TYPES, type AlertType } from "#wire/webapi/alert.ts";
import { ALERT_KINDS } from "./alert-kinds.ts";
import type { Condition, Moment, Occurrence } from "./condition.ts";
import { type Notice, type NotificationAlert, subjectShape } from "./notification.ts";
import { NOTIFICATION_RULES } from "./notification-rules.ts";
import {
  CALM,
  type Flaps,
  isCalm,
  isWorse,
  type NotificationLevel,
  STEADY,
  type Watch,
} from "./notification-state.ts";

/** Alerts in one message; further news go out in further messages. */
export const NOTIFICATION_ALERTS_MAX = 50;

const LEVEL = z.enum(["warning", "critical"]);

/** What was sent about an open alert. */
const told = z.object({ level: LEVEL, worst: LEVEL, atWallMs: z.number(), isFlapping: z.boolean() });

/** What was sent about an open alert. */
export type SentState = z.infer<typeof told>;

/** The subject of an alert, from its last bad reading. */
export type Subject = {
  readonly [Name in "nodeId" | "nodeName" | "username" | "value" | "threshold" | "detail"]?:
    | Condition[Name]
    | undefined;
};

/** The notification state of one key. */
export interface TrackedAlert {
  readonly key: string;
  readonly type: AlertType;
  /** True for an event: rounds without one are its good readings. */
  readonly isHappening: boolean;
  subject: Subject;
  /** Name of its group, cached while the subject stays the same. */
  groupName: string | undefined;
  watch: Watch;
  flaps: Flaps;
  startsAtMs: number;
  endsAtMs: number;
  told: SentState | undefined;
  isAcked: boolean;
}

/** The state that survives a restart, in a file: what was sent, and when each group was last sent. */
export const storedNotifications = z.object({
  alerts: z.array(
    z.object({
      key: z.string(),
      type: z.enum(ALERT_TYPES),
      isHappening: z.boolean(),
      ...subjectShape,
      told,
      startsAtMs: z.number(),
      isAcked: z.boolean(),
    }),
  ),
  groups: z.array(z.object({ labels: z.record(z.string(), z.string()), lastSentWallMs: z.number() })),
  /** Events that were not sent yet, of which no later reading tells. */
  untold: z
    .array(z.object({ key: z.string(), type: z.enum(ALERT_TYPES), level: LEVEL, ...subjectShape }))
    .default([]),
});

/** The state that survives a restart. */
export type StoredNotifications = z.infer<typeof storedNotifications>;

/** One alert of that state. */
export type StoredNotificationAlert = StoredNotifications["alerts"][number];

/** The state of a new key. */
export function newcomer({ key, type }: Condition | Occurrence, isHappening: boolean): TrackedAlert {
  const nothing = { told: undefined, isAcked: false, startsAtMs: 0, endsAtMs: 0 };
  return {
    key,
    type,
    isHappening,
    subject: {},
    groupName: undefined,
    watch: CALM,
    flaps: STEADY,
    ...nothing,
  };
}

/** The state of a key that an earlier run has told of. */
export function trackedAgain(
  { key, type, isHappening, told: before, startsAtMs, isAcked, ...subject }: StoredNotificationAlert,
  at: Moment,
): TrackedAlert {
  // Its only clear reading may have come before the restart; if it still is bad, the next poll raises it again.
  const isEnding = NOTIFICATION_RULES[type].clearComesOnce === true;
  const underWarning = isEnding ? { sinceMs: at.steadyMs, count: 1 } : undefined;
  return {
    key,
    type,
    isHappening,
    subject: subjectOf(subject),
    groupName: undefined,
    watch: { ...CALM, level: before.level, underWarning },
    flaps: before.isFlapping ? { raisesMs: [], unstableMs: at.steadyMs } : STEADY,
    startsAtMs,
    endsAtMs: at.wallMs,
    told: { ...before },
    isAcked,
  };
}

/** True where an acknowledgement from before the first message covers no more: it is over, or critical by now. */
export function isBeyondAck(before: Watch, now: Watch): boolean {
  const isWorse = before.level !== "critical" && before.overCritical === undefined;
  return isCalm(now) || (isWorse && now.overCritical !== undefined);
}

/** Records that a milder level than the one told is known now: a rise from it is news again. */
export function noteMilder({ told: before, watch: { level } }: TrackedAlert): void {
  if (before !== undefined && level !== "none" && isWorse(level, before.level)) before.level = level;
}

/** The subject of a condition, without undefined fields. */
export function subjectOf(fact: Subject): Subject {
  const { nodeId, nodeName, username, value, threshold, detail } = fact;
  return defined({ nodeId, nodeName, username, value, threshold, detail });
}

/** An object without its undefined members. */
export function defined<T extends object>(members: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof T]: Exclude<T[Name], undefined> };
}

/** The number of single users that an alert is about. */
export function usersOf({ type }: Pick<Condition, "type">): 0 | 1 {
  return ALERT_KINDS[type].isAboutUser === true ? 1 : 0;
}

/** The worse of two levels; a warning where neither is bad. */
export function worseOf(a: NotificationLevel, b: NotificationLevel | undefined): "warning" | "critical" {
  return a === "critical" || b === "critical" ? "critical" : "warning";
}

/** An alert as a message carries it. */
export function notificationAlertOf(
  tracked: TrackedAlert,
  reason: NotificationAlert["reason"],
): NotificationAlert {
  const { key, type, subject, watch, startsAtMs } = tracked;
  const severity = watch.level === "none" ? (tracked.told?.level ?? "warning") : watch.level;
  const worst = worseOf(severity, tracked.told?.worst);
  const isOver = reason === "over";
  return {
    key,
    type,
    status: isOver ? "resolved" : "firing",
    reason,
    severity,
    worst,
    ...subjectOf(subject),
    startsAtMs,
    ...(isOver ? { endsAtMs: tracked.endsAtMs } : {}),
  };
}

/** Splits a group's news into messages, and adds open alerts as context where there is room. */
export function noticesOf(
  group: Readonly<Record<string, string>>,
  news: readonly NotificationAlert[],
  standing: readonly NotificationAlert[],
): Notice[] {
  const isFiring = standing.length > 0 || news.some(({ status }) => status === "firing");
  const result: Notice[] = [];
  for (let at = 0; at < news.length; at += NOTIFICATION_ALERTS_MAX) {
    const chunk = news.slice(at, at + NOTIFICATION_ALERTS_MAX);
    const isLast = at + NOTIFICATION_ALERTS_MAX >= news.length;
    const beside = isLast ? standing.slice(0, NOTIFICATION_ALERTS_MAX - chunk.length) : [];
    const truncated = isLast ? standing.length - beside.length : 0;
    const status = isFiring ? "firing" : "resolved";
    result.push({ group: { ...group }, status, alerts: [...chunk, ...beside], truncated });
  }
  return result;
}
