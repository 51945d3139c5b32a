// Thresholds of warnings and critical figures: those of the console's rules, for pages.
import { ALERT_THRESHOLDS, NODE_STATUS_THRESHOLDS } from "#base/limits.ts";
import { USAGE_LEVEL_PERCENT } from "#base/usage-level.ts";

/** A threshold in a chart. */
interface Limit {
  readonly label: string;
  readonly value: number;
  readonly severity: "warning" | "critical";
}

const { warning, degraded, critical } = NODE_STATUS_THRESHOLDS;

/** Percent of a disk above which a node is critical, degraded, a warning (spec 3.2). */
export const DISK_STEPS: readonly number[] = [
  critical.diskPercent,
  degraded.diskPercent,
  warning.diskPercent,
];
/** Degrees Celsius, in the same order. */
export const HEAT_STEPS: readonly number[] = [
  critical.temperatureCelsius,
  degraded.temperatureCelsius,
  warning.temperatureCelsius,
];

/** Alert lines in a disk's chart (spec 3.1). */
export const DISK_LIMITS: readonly Limit[] = limits(ALERT_THRESHOLDS.storagePercent, "%");
/** Alert lines in a chart of temperatures. */
export const HEAT_LIMITS: readonly Limit[] = limits(ALERT_THRESHOLDS.temperatureCelsius, "°C");

/** The level of a percentage, by the thresholds of users' quotas (spec 3.1). */
export function fullness(percent: number | null): "ok" | "warning" | "critical" {
  if (percent === null || percent <= USAGE_LEVEL_PERCENT.yellow) return "ok";
  return percent <= USAGE_LEVEL_PERCENT.red ? "warning" : "critical";
}

function limits(steps: Readonly<Record<"warning" | "critical", number>>, unit: string): Limit[] {
  return (["warning", "critical"] as const).map((severity) => ({
    label: `${severity} above ${steps[severity]} ${unit}`,
    value: steps[severity],
    severity,
  }));
}
