// The results of an evaluation: facts about keys, and events since the last one (spec 3.1, 3.3).
import type { AlertType } from "#wire/webapi/alert.ts";

/**
 * The level of a condition. "hold" is exactly at a threshold, which keeps the state (T1, D24). "unknown"
 * means missing data, which is not healthy and keeps the state too.
 */
export type ConditionLevel = "clear" | "hold" | "info" | "warning" | "critical" | "unknown";

/** One fact about one key at one evaluation. A key without a condition keeps its state. */
export interface Condition {
  /** Identifies the alert (spec 3.3), with the raw form of a username (D24). */
  readonly key: string;
  readonly type: AlertType;
  readonly level: ConditionLevel;
  /** Exactly at the upper threshold: a critical alert stays critical, a warning stays a warning (D24). */
  readonly keepsCritical?: boolean;
  /** The measured value, in the unit of its rule: percent, degrees Celsius, days, milliseconds or a count. */
  readonly value?: number;
  /** The exceeded threshold, in the same unit. */
  readonly threshold?: number;
  readonly nodeId?: string;
  readonly nodeName?: string;
  readonly username?: string;
  /**
   * True when the fact depends on a node's data about users, though it names none; visitors do not see it.
   */
  readonly isOfUsers?: true;
  /** Further facts for the text. */
  readonly detail?: Readonly<Record<string, string | number>>;
}

/** An event, as opposed to a state: every one counts, also after its alert was resolved by hand. */
export interface Occurrence extends Omit<Condition, "level" | "keepsCritical"> {
  readonly level: "info" | "warning" | "critical";
  /** Number of events that it stands for; default 1. */
  readonly count?: number;
}

/** A moment on both clocks. */
export interface Moment {
  readonly wallMs: number;
  readonly steadyMs: number;
}
