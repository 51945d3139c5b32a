// How much of a quota is used: its percentage, and three levels that lists of users show and colour (spec 3.1).

/** Percentages of the quota above which a level begins. */
export const USAGE_LEVEL_PERCENT = { yellow: 80, red: 95 } as const;

/** Yellow above 80 %, red above 95 %, exactly (spec 3.1). */
export function usageLevel(usedBytes: bigint, quotaBytes: bigint): "ok" | "yellow" | "red" {
  const hundredfold = usedBytes * 100n;
  if (hundredfold > quotaBytes * BigInt(USAGE_LEVEL_PERCENT.red)) return "red";
  return hundredfold > quotaBytes * BigInt(USAGE_LEVEL_PERCENT.yellow) ? "yellow" : "ok";
}

/** Higher percentages are shown as "over" this value, since further digits are of no use. */
export const PERCENT_TOLD_MAX = 999;

/**
 * Used percentage of a quota (above zero) with two decimals, rounded down: below 100 is below (spec 3.1, T1).
 */
export function quotaPercent(usedBytes: bigint, quotaBytes: bigint): number {
  return Number((usedBytes * 10_000n) / quotaBytes) / 100;
}
