// A quota in words, and the effect of a change before it is made.
import type { UserRow } from "#wire/webapi/user.ts";
import type { LiveNode } from "./live-node.ts";
import { bytesText, percentText, UNKNOWN } from "./number.ts";

/** "16 GiB", "16 GiB (default)" for an unset one, "16 GiB (pending)" until the home node has reported. */
export function quotaText(user: Pick<UserRow, "quota_limit" | "quota_source">): string {
  const amount = bytesText(user.quota_limit);
  return user.quota_source === "explicit" ? amount : `${amount} (${user.quota_source})`;
}

/**
 * The quota that takes a change back, 0 for the default. `previous` is that of the console's answer: another
 * operator may have changed the one that the page had read.
 */
export function quotaToUndo(
  previous: UserRow["quota_limit"],
  before: Pick<UserRow, "quota_limit" | "quota_source">,
): bigint {
  const isKnown = BigInt(previous) === BigInt(before.quota_limit);
  return isKnown && before.quota_source !== "explicit" ? 0n : BigInt(previous);
}

/** "9,120 of 10,000,000 (default), 0.09 %"; a dash until the home node has reported. */
export function inodesText(
  user: Pick<UserRow, "inode_count" | "inode_limit" | "inode_limit_source">,
): string {
  const { inode_count: count, inode_limit: limit } = user;
  if (count === null || limit === null) return UNKNOWN;
  const source = user.inode_limit_source === "default" ? " (default)" : "";
  return `${count.toLocaleString()} of ${limit.toLocaleString()}${source}, ${percentText(inodePercent(user))}`;
}

/** Used part of an inode limit in percent; null while it is unknown. */
export function inodePercent({
  inode_count: count,
  inode_limit: limit,
}: Pick<UserRow, "inode_count" | "inode_limit">): number | null {
  return count === null || limit === null || limit === 0 ? null : (count / limit) * 100;
}

/** The effect of a new inode limit, before it is set. */
export function inodeConsequence(
  user: Pick<UserRow, "username" | "inode_count" | "inode_limit">,
  limit: number,
): string {
  const { username, inode_count: count, inode_limit: before } = user;
  const first = `${(before ?? 0).toLocaleString()} → ${limit.toLocaleString()}.`;
  if (count === null) return first;
  return limit < count
    ? `${first} ${username} has ${(count - limit).toLocaleString()} more: nothing is deleted, but no more can be made until enough is removed.`
    : `${first} ${username} can then make ${(limit - count).toLocaleString()} more.`;
}

/** "16 GiB → 40 GiB. Bob then has 24.3 GiB free. fs-2 has 800 GiB above its reserve." */
export function quotaConsequence(
  user: Pick<UserRow, "username" | "quota_limit" | "used_bytes">,
  bytes: bigint,
  home: Pick<LiveNode, "name" | "disk_free_bytes" | "reserve_bytes"> | undefined,
): string {
  const used = BigInt(user.used_bytes);
  const first = `${bytesText(user.quota_limit)} → ${bytesText(bytes.toString())}.`;
  if (bytes < used) {
    return `${first} That is ${bytesText((used - bytes).toString())} less than ${user.username} uses: nothing is deleted, but no more can be written until enough is removed.`;
  }
  const free = `${user.username} then has ${bytesText((bytes - used).toString())} free.`;
  return [first, free, roomText(home, bytes - used)].filter((sentence) => sentence !== "").join(" ");
}

/** The room on the disk; empty while unknown. */
function roomText(
  home: Pick<LiveNode, "name" | "disk_free_bytes" | "reserve_bytes"> | undefined,
  free: bigint,
): string {
  // A node of another version may omit either.
  const [diskFree, reserve] = [home?.disk_free_bytes ?? null, home?.reserve_bytes ?? null];
  if (home === undefined || diskFree === null || reserve === null) return "";
  const room = BigInt(diskFree) - BigInt(reserve);
  if (room <= 0n) return `But ${home.name} is down to its reserve and takes no more writes.`;
  const amount = bytesText(room.toString());
  return room < free
    ? `But ${home.name} has only ${amount} above its reserve.`
    : `${home.name} has ${amount} above its reserve.`;
}
