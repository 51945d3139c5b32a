// A quota in words, and what changing it does, said before it is changed.
import type { UserRow } from "#webapi/user.ts";
import type { LiveNode } from "../live/connection.ts";
import { bytesText } from "./number.ts";

/** "16 GiB", "16 GiB (default)" where nobody has set one, "16 GiB (pending)" while the home node has not reported. */
export function quotaText(user: Pick<UserRow, "quota_limit" | "quota_source">): string {
  const amount = bytesText(user.quota_limit);
  return user.quota_source === "explicit" ? amount : `${amount} (${user.quota_source})`;
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

/** What the disk below has for it; nothing while that is unknown. */
function roomText(
  home: Pick<LiveNode, "name" | "disk_free_bytes" | "reserve_bytes"> | undefined,
  free: bigint,
): string {
  // A node of another version may leave either out.
  const [diskFree, reserve] = [home?.disk_free_bytes ?? null, home?.reserve_bytes ?? null];
  if (home === undefined || diskFree === null || reserve === null) return "";
  const room = BigInt(diskFree) - BigInt(reserve);
  if (room <= 0n) return `But ${home.name} is down to its reserve and takes no more writes.`;
  const amount = bytesText(room.toString());
  return room < free
    ? `But ${home.name} has only ${amount} above its reserve.`
    : `${home.name} has ${amount} above its reserve.`;
}
