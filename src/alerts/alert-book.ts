// The book of alerts: conditions in, events out; one alert per key until it is resolved (spec 3.1, 3.3). Pure.
import type { AlertRecord } from "#webapi/alert.ts";
import type { Condition, Moment } from "./condition.ts";

/** What has become of an alert. "recorded" is a recovery: an info record that is resolved from the start. */
export interface AlertEvent {
  readonly kind: "raised" | "changed" | "resolved" | "recorded";
  readonly alert: AlertRecord;
  /** As visitors may see it; undefined when they may not see it at all (spec 5.8.4). */
  readonly public: AlertRecord | undefined;
}

/** All alerts, those that are open and those that are kept. */
export class AlertBook {
  /** Takes an evaluation's conditions and tells what they have changed. */
  apply(_conditions: readonly Condition[], _at: Moment): AlertEvent[] {
    return [];
  }
}
