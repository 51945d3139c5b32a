// One row of the user list: what is known of a root and how it is shown (decision D5, spec 5.9).

import { toJson64 } from "#base/json64.ts";
import { quotaPercent, usageLevel } from "#base/usage-level.ts";
import type { UserRow } from "#wire/webapi/user.ts";
import type { UserDetail } from "./cluster-state.ts";

/** A user, merged from the home node's report and from changes made here since. Changed in place. */
export interface MergedUser {
  readonly username: string;
  nodeId: string;
  usedBytes: bigint;
  /** The quota in effect. */
  quotaBytes: bigint;
  /** "pending": the home node has not reported (spec 5.9). */
  source: UserRow["quota_source"];
  detail: UserDetail | undefined;
  /** The used share of the quota, by which the order by usage sorts. */
  usedShare: number;
  /** The last merge that contained this user. */
  metInMerge: number;
}

/** The row of a user. `fullInDays` is the forecast, if any. */
export function userRowOf(
  user: MergedUser,
  beside: { readonly nodeName: string; readonly fullInDays: number | undefined; readonly isLocked: boolean },
): UserRow {
  const { usedBytes, quotaBytes, detail } = user;
  const trash = detail?.trashBytes ?? 0n;
  const staging = detail?.stagingBytes ?? 0n;
  const rest = usedBytes > trash + staging ? usedBytes - trash - staging : 0n;
  return {
    username: user.username,
    quota_limit: toJson64(quotaBytes),
    quota_source: user.source,
    used_bytes: toJson64(usedBytes),
    live_bytes: toJson64(detail?.liveBytes ?? rest),
    trash_bytes: toJson64(trash),
    staging_bytes: toJson64(staging),
    file_count: detail?.fileCount ?? 0,
    inode_count: detail?.inodeCount ?? null,
    inode_limit: detail?.inodeLimit ?? null,
    inode_limit_source: limitSource(detail?.inodeLimitExplicit),
    usage_percent: quotaPercent(usedBytes, quotaBytes),
    level: usageLevel(usedBytes, quotaBytes),
    locked: beside.isLocked,
    home_node_id: user.nodeId,
    home_node_name: beside.nodeName,
    last_active: detail?.lastActiveUnix ?? null,
    full_in_days: beside.fullInDays ?? null,
  };
}

function limitSource(isExplicit: boolean | null | undefined): UserRow["inode_limit_source"] {
  if (isExplicit === null || isExplicit === undefined) return null;
  return isExplicit ? "explicit" : "default";
}
