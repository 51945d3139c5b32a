// Computes the used percentage of a quota for alerts and lists.

/** Higher percentages are shown as "over" this value, since further digits are of no use. */
export const PERCENT_TOLD_MAX = 999;

/**
 * Used percentage of a quota (above zero) with two decimals, rounded down: below 100 is below (spec 3.1, T1).
 */
export function quotaPercent(usedBytes: bigint, quotaBytes: bigint): number {
  return Number((usedBytes * 10_000n) / quotaBytes) / 100;
}
