// What an evaluation finds: one fact about one key, and what has happened since the last one (spec 3.1, 3.3).
import type { AlertType } from "#wire/webapi/alert.ts";

/**
 * Where a condition stands. "hold" is exactly at a threshold: whatever stands there stays (T1, D24). "unknown" is no data, which is not
 * healthy: it keeps everything too.
 */
export type ConditionLevel = "clear" | "hold" | "info" | "warning" | "critical" | "unknown";

/** One fact about one key at one evaluation. A key that is not mentioned keeps what it has. */
export interface Condition {
  /** What alerts are told apart by (spec 3.3), with the raw form of a user's name (D24). */
  readonly key: string;
  readonly type: AlertType;
  readonly level: ConditionLevel;
  /** Exactly at the upper threshold: an alert that is critical stays so, none becomes so (D24). */
  readonly keepsCritical?: boolean;
  /** The measured value, in the unit of its rule: percent, degrees Celsius, days, milliseconds or a count. */
  readonly value?: number;
  /** The threshold that was crossed, in the same unit. */
  readonly threshold?: number;
  readonly nodeId?: string;
  readonly nodeName?: string;
  readonly username?: string;
  /** True when it is so because of what a node says of users, though it names none: visitors learn nothing of it. */
  readonly isOfUsers?: true;
  /** What else the text for people needs. */
  readonly detail?: Readonly<Record<string, string | number>>;
}

/** Something that happened, as against something that is so: every one counts, also after its alert was resolved by hand. */
export interface Occurrence extends Omit<Condition, "level" | "keepsCritical"> {
  readonly level: "info" | "warning" | "critical";
  /** How many it stands for; default 1. */
  readonly count?: number;
}

/** A moment on both clocks. */
export interface Moment {
  readonly wallMs: number;
  readonly steadyMs: number;
}
