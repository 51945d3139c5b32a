// The state of one key's notice as readings come in: raised late, kept for a while, held when it flaps (decision D11, T3). Pure.
import type { NotificationRule, Sustained } from "./notification-rules.ts";

/** Notices: raises of one key within FLAP_WINDOW_MS that are told; one more is told as flapping (decision D11). */
export const FLAP_RAISES_MAX = 3;
/** Notices: the time in which raises are counted, and for which a flapping key must be stable to be told again (decision D11). */
export const FLAP_WINDOW_MS: number = 30 * 60_000;

/** How bad a key is as far as notices go. */
export type NotificationLevel = "none" | "warning" | "critical";

/** One look at a key: how it is graded, and its value in the unit of its rule. */
export interface Reading {
  readonly level: "clear" | "info" | "warning" | "critical";
  readonly value?: number | undefined;
}

/** Readings in a row that say the same: when the first came (steady milliseconds), and how many there were. */
interface Run {
  readonly sinceMs: number;
  readonly count: number;
}

/** What is remembered of one key between readings. */
export interface Watch {
  readonly level: NotificationLevel;
  /** How long it has been at least a warning, and critical. */
  readonly overWarning: Run | undefined;
  readonly overCritical: Run | undefined;
  /** How long it has been below the clear level of each. */
  readonly underWarning: Run | undefined;
  readonly underCritical: Run | undefined;
}

/** A key of which nothing bad is known. */
export const CALM: Watch = {
  level: "none",
  overWarning: undefined,
  overCritical: undefined,
  underWarning: undefined,
  underCritical: undefined,
};

/**
 * Takes one reading into account, at a moment of the steady clock. Where mayRaise is false nothing becomes worse yet, and time counts
 * all the same. No data is no reading: leave it out, and everything stays as it is.
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

/** True when nothing is remembered that a fresh key would not have too. */
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

/** How often a key was raised lately, and whether it is held for that. */
export interface Flaps {
  /** When it was raised or became worse within the last FLAP_WINDOW_MS, steady milliseconds. */
  readonly raisesMs: readonly number[];
  /** Set while the key is held: when its level changed last. */
  readonly unstableMs: number | undefined;
}

/** A key that does not flap. */
export const STEADY: Flaps = { raisesMs: [], unstableMs: undefined };

/** Counts a change of level: a fourth raise within 30 minutes begins a hold, every change during one prolongs it. */
export function afterChange(flaps: Flaps, isRaise: boolean, steadyMs: number): Flaps {
  if (flaps.unstableMs !== undefined) return { ...flaps, unstableMs: steadyMs };
  if (!isRaise) return flaps;
  const raisesMs = [...flaps.raisesMs.filter((ms) => steadyMs - ms < FLAP_WINDOW_MS), steadyMs];
  return { raisesMs, unstableMs: raisesMs.length > FLAP_RAISES_MAX ? steadyMs : undefined };
}

/** The same after time alone has passed: old raises are forgotten, and a hold ends 30 minutes after the last change. */
export function afterTime(flaps: Flaps, steadyMs: number): Flaps {
  if (flaps.unstableMs !== undefined) {
    return steadyMs - flaps.unstableMs >= FLAP_WINDOW_MS ? STEADY : flaps;
  }
  const raisesMs = flaps.raisesMs.filter((ms) => steadyMs - ms < FLAP_WINDOW_MS);
  if (raisesMs.length === flaps.raisesMs.length) return flaps;
  return raisesMs.length === 0 ? STEADY : { raisesMs, unstableMs: undefined };
}
