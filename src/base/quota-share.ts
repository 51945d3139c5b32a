// How full a quota is, in the one way in which alerts and lists say it.

/** Percentages above this are said to be over it: beyond, digits tell nobody more. */
export const PERCENT_TOLD_MAX = 999;

/** Used part of a quota in percent with two decimals, rounded down: below 100 means below (spec 3.1, decision T1). The quota is above zero. */
export function quotaPercent(usedBytes: bigint, quotaBytes: bigint): number {
  return Number((usedBytes * 10_000n) / quotaBytes) / 100;
}
