// From where on a figure is shown as a warning or as critical: the steps of the console's own rules, for pages.
import { ALERT_THRESHOLDS, NODE_STATUS_THRESHOLDS } from "#base/limits.ts";
import { USAGE_LEVEL_PERCENT } from "#base/usage-level.ts";

/** A step as a chart draws it. */
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

/** The lines of alerts in a disk's chart (spec 3.1). */
export const DISK_LIMITS: readonly Limit[] = limits(ALERT_THRESHOLDS.storagePercent, "%");
/** The same in the chart of temperatures. */
export const HEAT_LIMITS: readonly Limit[] = limits(ALERT_THRESHOLDS.temperatureCelsius, "°C");

/** How full something is in percent: as a user's quota is judged (spec 3.1). */
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
