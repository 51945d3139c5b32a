// Grades a quota's use in three levels, which lists of users show and colour (spec 3.1).

/** Percentages of the quota above which a level begins. */
export const USAGE_LEVEL_PERCENT = { yellow: 80, red: 95 } as const;

/** Yellow above 80 %, red above 95 %, exactly (spec 3.1). */
export function usageLevel(usedBytes: bigint, quotaBytes: bigint): "ok" | "yellow" | "red" {
  const hundredfold = usedBytes * 100n;
  if (hundredfold > quotaBytes * BigInt(USAGE_LEVEL_PERCENT.red)) return "red";
  return hundredfold > quotaBytes * BigInt(USAGE_LEVEL_PERCENT.yellow) ? "yellow" : "ok";
}
