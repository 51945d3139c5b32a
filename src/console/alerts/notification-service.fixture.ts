// A notification service on a manual clock, with its messages and their seconds.
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import type { AlertType } from "#wire/webapi/alert.ts";
import type { Condition, ConditionLevel, Moment, Occurrence } from "./condition.ts";
import type { Notice } from "./notification.ts";
import { NotificationService, type NotificationServiceOptions } from "./notification-service.ts";

/** A message and when it was due, in seconds since the start. */
export interface TimedNotification {
  readonly second: number;
  readonly notice: Notice;
}

const STARTED: Moment = { wallMs: 1_790_000_000_000, steadyMs: 5_000 };

/** Moves the clock of a service; a function supplies the conditions of each round. */
export class ServiceRun {
  readonly service: NotificationService;
  readonly notices: TimedNotification[] = [];
  second = 0;

  constructor(options: Partial<NotificationServiceOptions> = {}) {
    this.service = new NotificationService({
      groupBy: ["alertname"],
      groupMs: 30_000,
      repeatMs: 4 * 3_600_000,
      startedSteadyMs: STARTED.steadyMs,
      isSilenced: () => false,
      isMaintained: () => false,
      ...options,
    });
  }

  get now(): Moment {
    const passedMs = this.second * 1_000;
    return { wallMs: STARTED.wallMs + passedMs, steadyMs: STARTED.steadyMs + passedMs };
  }

  /** Lets seconds pass. */
  run(
    seconds: number,
    found: (second: number) => readonly Condition[],
    happened: (second: number) => readonly Occurrence[] = () => [],
  ): void {
    for (const end = this.second + seconds; this.second < end; this.second++) {
      if (this.second % (POLL_INTERVAL_MS / 1_000) === 0) {
        this.service.observe(found(this.second), happened(this.second), this.now);
      }
      for (const notice of this.service.tick(this.now)) this.notices.push({ second: this.second, notice });
    }
  }

  /** The sent news and repeats in short form: second, reason and key. */
  told(): string[] {
    return this.notices.flatMap(({ second, notice }) =>
      notice.alerts
        .filter(({ reason }) => reason !== "standing")
        .map(({ reason, key, severity }) => `${second} ${reason} ${key} ${severity}`),
    );
  }
}

/** A condition about a node. */
export function nodeCondition(
  type: AlertType,
  nodeId: string,
  level: ConditionLevel,
  value?: number,
): Condition {
  const about = { key: `${type}:${nodeId}`, type, level, nodeId, nodeName: nodeId };
  return value === undefined ? about : { ...about, value };
}

/** A disk's usage as a condition. */
export function diskCondition(nodeId: string, value: number): Condition {
  const level = value > 95 ? "critical" : value > 80 ? "warning" : value === 80 ? "hold" : "clear";
  return { ...nodeCondition("storage_warning", nodeId, level, value), threshold: value > 95 ? 95 : 80 };
}
