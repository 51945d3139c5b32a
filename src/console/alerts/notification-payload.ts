// The forms of a sent message: Alertmanager's webhook payload, version 4, and a plain mail (decision D11).
import { createHash } from "node:crypto";
import { formatDuration } from "#base/duration.ts";
import { type AlertText, type TextFacts, textOf } from "./alert-texts.ts";
import type { Notice, NotificationAlert } from "./notification.ts";
import { FLAP_RAISES_MAX, FLAP_WINDOW_MS } from "./notification-state.ts";

type Texts = Readonly<Record<string, string>>;

/** One alert in Alertmanager's form. */
interface PayloadAlert {
  readonly status: "firing" | "resolved";
  readonly labels: Texts;
  readonly annotations: Texts;
  /** RFC 3339. */
  readonly startsAt: string;
  /** RFC 3339; year 1 while the alert is open. */
  readonly endsAt: string;
  readonly generatorURL: string;
  /** 16 hex characters that depend on the key only, for every severity. */
  readonly fingerprint: string;
}

/** The body of a webhook, as in webhook_config of prometheus.io/docs/alerting/latest/configuration. */
export interface WebhookPayload {
  readonly version: "4";
  readonly groupKey: string;
  readonly truncatedAlerts: number;
  readonly status: "firing" | "resolved";
  readonly receiver: string;
  readonly groupLabels: Texts;
  readonly commonLabels: Texts;
  readonly commonAnnotations: Texts;
  readonly externalURL: string;
  readonly alerts: readonly PayloadAlert[];
}

/** A mail without its addresses. */
export interface MailText {
  readonly subject: string;
  readonly text: string;
}

const NOT_OVER = "0001-01-01T00:00:00Z";
const SUBJECT_MAX_LENGTH = 200;

/** A message as a webhook's body. consoleUrl is its link to the console; empty when unknown. */
export function webhookPayload(notice: Notice, receiver: string, consoleUrl: string): WebhookPayload {
  const alerts = notice.alerts.map((alert): PayloadAlert => {
    return {
      status: alert.status,
      labels: labelsOf(alert),
      annotations: annotationsOf(alert),
      startsAt: new Date(alert.startsAtMs).toISOString(),
      endsAt: alert.endsAtMs === undefined ? NOT_OVER : new Date(alert.endsAtMs).toISOString(),
      generatorURL: consoleUrl,
      fingerprint: createHash("sha256").update(alert.key).digest("hex").slice(0, 16),
    };
  });
  return {
    version: "4",
    groupKey: groupKeyOf(notice.group),
    truncatedAlerts: notice.truncated,
    status: notice.status,
    receiver,
    groupLabels: notice.group,
    commonLabels: common(alerts.map(({ labels }) => labels)),
    commonAnnotations: common(alerts.map(({ annotations }) => annotations)),
    externalURL: consoleUrl,
    alerts,
  };
}

/** A message as a mail. */
export function mailText(notice: Notice, consoleUrl: string): MailText {
  const [first] = notice.alerts;
  const firing = notice.alerts.filter(({ status }) => status === "firing");
  const more = notice.alerts.length > 1 ? ` (and ${notice.alerts.length - 1} more)` : "";
  const word = notice.status === "resolved" ? "over" : firing.some(isCritical) ? "critical" : "warning";
  const title = first === undefined ? "nothing" : textFor(first).title;
  const blocks = notice.alerts.map((alert) => {
    const { title: head, message } = textFor(alert);
    const since = `since ${minute(alert.startsAtMs)}`;
    const until = alert.endsAtMs === undefined ? "" : `, over at ${minute(alert.endsAtMs)}`;
    const kind = alert.status === "resolved" ? "over" : alert.severity;
    return `[${kind}] ${head}\n${message}\n(${alert.key}, ${since}${until})`;
  });
  if (notice.truncated > 0) blocks.push(`${notice.truncated} more of the same kind stand as before.`);
  if (consoleUrl !== "") blocks.push(consoleUrl);
  const subject = oneLine(`[grove ${word}] ${title}${more}`).slice(0, SUBJECT_MAX_LENGTH);
  return { subject, text: `${blocks.join("\n\n")}\n` };
}

function isCritical({ severity }: NotificationAlert): boolean {
  return severity === "critical";
}

function labelsOf({ type, severity, nodeId, nodeName, username }: NotificationAlert): Texts {
  return {
    alertname: type,
    severity,
    // The label that templates for Prometheus expect.
    instance: nodeName ?? nodeId ?? "console",
    ...(nodeId === undefined ? {} : { node_id: nodeId }),
    ...(nodeName === undefined ? {} : { node_name: nodeName }),
    ...(username === undefined ? {} : { username }),
  };
}

function annotationsOf(alert: NotificationAlert): Texts {
  const { title, message } = textFor(alert);
  return {
    summary: title,
    description: message,
    key: alert.key,
    ...(alert.value === undefined ? {} : { value: `${alert.value}` }),
    ...(alert.threshold === undefined ? {} : { threshold: `${alert.threshold}` }),
  };
}

function textFor(alert: NotificationAlert): AlertText {
  const { type, severity, nodeId, nodeName, username, value, threshold, detail } = alert;
  const facts = {
    severity,
    node: nodeName ?? nodeId ?? "",
    username,
    value,
    threshold,
    detail: detail ?? {},
  };
  const text = textOf(type, facts, false);
  if (alert.status === "resolved") return overText(alert, facts, text);
  if (alert.reason !== "flapping") return text;
  const span = formatDuration(FLAP_WINDOW_MS);
  return {
    title: `Flapping: ${text.title}`,
    message: `${text.message} This came and went more than ${FLAP_RAISES_MAX} times within ${span}; nothing more is told of it until it has been stable for ${span}.`,
  };
}

function overText(alert: NotificationAlert, facts: TextFacts, before: AlertText): AlertText {
  if (alert.detail?.["gone"] !== undefined) {
    const title = `No longer watched: ${before.title}`;
    return { title, message: `${facts.node} is not in the cluster any more. Last known: ${before.message}` };
  }
  const awayMs = Math.max(0, (alert.endsAtMs ?? alert.startsAtMs) - alert.startsAtMs);
  // The end of an absence is a record of a type of its own.
  if (alert.type === "node_offline") {
    return textOf("node_online", { ...facts, detail: { away_seconds: awayMs / 1_000 } }, false);
  }
  const text = textOf(alert.type, facts, true);
  if (text.title !== before.title) return text;
  return { title: `Over: ${before.title}`, message: `It has not happened again. ${before.message}` };
}

function groupKeyOf(group: Texts): string {
  const labels = Object.entries(group)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `{}:{${labels.join(", ")}}`;
}

function common(each: readonly Texts[]): Texts {
  const [first, ...others] = each;
  return Object.fromEntries(
    Object.entries(first ?? {}).filter(([name, value]) => others.every((other) => other[name] === value)),
  );
}

function minute(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, " ");
}
