// The state of one key's notifications: raised late, kept a while, held while flapping (decision D11, T3).
import type { NotificationRule, Sustained } from "./notification-rules.ts";

/** Raises of one key within FLAP_WINDOW_MS that are sent; one more is sent as flapping (decision D11). */
export const FLAP_RAISES_MAX = 3;
/** Window in which raises count, and the stable time that ends a key's flapping (decision D11). */
export const FLAP_WINDOW_MS: number = 30 * 60_000;

/** The level of a key for notifications. */
export type NotificationLevel = "none" | "warning" | "critical";

/** One reading of a key: its level, and its value in the unit of its rule. */
export interface Reading {
  readonly level: "clear" | "info" | "warning" | "critical";
  readonly value?: number | undefined;
}

/** Consecutive equal readings: time of the first (steady milliseconds), and their number. */
interface Run {
  readonly sinceMs: number;
  readonly count: number;
}

/** The state of one key between readings. */
export interface Watch {
  readonly level: NotificationLevel;
  /** Readings that are at least a warning, and critical. */
  readonly overWarning: Run | undefined;
  readonly overCritical: Run | undefined;
  /** Readings below the clear level of each. */
  readonly underWarning: Run | undefined;
  readonly underCritical: Run | undefined;
}

/** A key without bad readings. */
export const CALM: Watch = {
  level: "none",
  overWarning: undefined,
  overCritical: undefined,
  underWarning: undefined,
  underCritical: undefined,
};

/**
 * Applies one reading at a moment of the steady clock. With mayRaise false the level does not rise yet, but
 * time counts. Missing data is no reading: without a call everything stays as it is.
 */
export function afterReading(
  watch: Watch,
  reading: Reading,
  rule: NotificationRule,
  at: { readonly steadyMs: number; readonly mayRaise: boolean },
): Watch {
  const { steadyMs } = at;
  const isCritical = reading.level === "critical";
  const isBad = isCritical || reading.level === "warning";
  const next = {
    overWarning: run(watch.overWarning, isBad, steadyMs),
    overCritical: run(watch.overCritical, isCritical, steadyMs),
    underWarning: run(watch.underWarning, !isBad && isUnder(reading, rule, "warning"), steadyMs),
    underCritical: run(watch.underCritical, !isCritical && isUnder(reading, rule, "critical"), steadyMs),
  };
  let { level } = watch;
  if (at.mayRaise && level !== "critical" && isMet(next.overCritical, rule.raise.critical, steadyMs)) {
    level = "critical";
  } else if (at.mayRaise && level === "none" && isMet(next.overWarning, rule.raise.warning, steadyMs)) {
    level = "warning";
  } else if (level !== "none" && isMet(next.underWarning, rule.clear, steadyMs)) {
    level = "none";
  } else if (level === "critical" && isMet(next.underCritical, rule.clear, steadyMs)) {
    level = "warning";
  }
  return { level, ...next };
}

/** True when the state equals that of a new key. */
export function isCalm(watch: Watch): boolean {
  return watch.level === "none" && watch.overWarning === undefined;
}

/** True when the second level is the worse one. */
export function isWorse(before: NotificationLevel, now: NotificationLevel): boolean {
  return RANK[now] > RANK[before];
}

const RANK: Readonly<Record<NotificationLevel, number>> = { none: 0, warning: 1, critical: 2 };

function run(before: Run | undefined, holds: boolean, steadyMs: number): Run | undefined {
  if (!holds) return undefined;
  return before === undefined ? { sinceMs: steadyMs, count: 1 } : { ...before, count: before.count + 1 };
}

function isMet(seen: Run | undefined, wanted: Sustained, steadyMs: number): boolean {
  return seen !== undefined && seen.count >= wanted.readings && steadyMs - seen.sinceMs >= wanted.forMs;
}

function isUnder(reading: Reading, rule: NotificationRule, of: "warning" | "critical"): boolean {
  if (rule.clearBelow === undefined || reading.value === undefined) return true;
  return reading.value < rule.clearBelow[of];
}

/** Recent raises of a key, and whether they cause a hold. */
export interface Flaps {
  /** Steady milliseconds of the raises within the last FLAP_WINDOW_MS. */
  readonly raisesMs: readonly number[];
  /** Set during a hold: the last change of level. */
  readonly unstableMs: number | undefined;
}

/** A key that does not flap. */
export const STEADY: Flaps = { raisesMs: [], unstableMs: undefined };

/** Counts a change of level: a fourth raise within 30 minutes begins a hold, further changes prolong it. */
export function afterChange(flaps: Flaps, isRaise: boolean, steadyMs: number): Flaps {
  if (flaps.unstableMs !== undefined) return { ...flaps, unstableMs: steadyMs };
  if (!isRaise) return flaps;
  const raisesMs = [...flaps.raisesMs.filter((ms) => steadyMs - ms < FLAP_WINDOW_MS), steadyMs];
  return { raisesMs, unstableMs: raisesMs.length > FLAP_RAISES_MAX ? steadyMs : undefined };
}

/** Applies the passing of time: old raises are dropped, and a hold ends 30 minutes after the last change. */
export function afterTime(flaps: Flaps, steadyMs: number): Flaps {
  if (flaps.unstableMs !== undefined) {
    return steadyMs - flaps.unstableMs >= FLAP_WINDOW_MS ? STEADY : flaps;
  }
  const raisesMs = flaps.raisesMs.filter((ms) => steadyMs - ms < FLAP_WINDOW_MS);
  if (raisesMs.length === flaps.raisesMs.length) return flaps;
  return raisesMs.length === 0 ? STEADY : { raisesMs, unstableMs: undefined };
}
