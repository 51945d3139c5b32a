// The quota in effect for a user: what the home node reports, or 16 GiB where it reports none (spec 2.1, 5.9).
import { DEFAULT_QUOTA_BYTES } from "#base/limits.ts";

/** The quota in effect for a node's report: none and zero mean the default (spec 2.1, 5.9). */
export function quotaInEffect(reported: bigint | undefined): bigint {
  return reported === undefined || reported === 0n ? DEFAULT_QUOTA_BYTES : reported;
}

/** Whether a quota in effect was set, which nodes of before do not report: to them the default is not set. */
export function sourceOfQuota(
  quotaBytes: bigint,
  isExplicit: boolean | null | undefined,
): "explicit" | "default" {
  return (isExplicit ?? quotaBytes !== DEFAULT_QUOTA_BYTES) ? "explicit" : "default";
}
