// Computes the used percentage of a quota for alerts and lists.

/** Higher percentages are shown as "over" this value, since more digits say nothing useful. */
export const PERCENT_TOLD_MAX = 999;

/**
 * Used percentage of a quota with two decimals, rounded down: below 100 means below (spec 3.1, decision T1).
 * The quota is above zero.
 */
export function quotaPercent(usedBytes: bigint, quotaBytes: bigint): number {
  return Number((usedBytes * 10_000n) / quotaBytes) / 100;
}
