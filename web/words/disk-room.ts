// Room for uploads, which end at a disk's reserve, and the disk that is full first.
import type { LiveNode } from "./live-node.ts";
import { countText, percentText, UNKNOWN } from "./number.ts";
import { formatDaysUntil } from "./time.ts";

type Disk = Pick<LiveNode, "status" | "unknown" | "disk_free_bytes" | "reserve_bytes">;

/** Bytes that uploads may still take on a node; undefined for unknown and offline ones. */
export function bytesForUploads(node: Disk): bigint | undefined {
  if (node.status === "offline" || node.unknown === true) return undefined;
  if (node.disk_free_bytes === null || node.reserve_bytes === null) return undefined;
  const left = BigInt(node.disk_free_bytes) - BigInt(node.reserve_bytes);
  return left > 0n ? left : 0n;
}

/** True for a node whose disk is down to its reserve. */
export function refusesUploads(node: Disk): boolean {
  return bytesForUploads(node) === 0n;
}

/** Room for uploads on all nodes; undefined without any report. */
export function allBytesForUploads(nodes: readonly Disk[]): string | undefined {
  const known = nodes.map(bytesForUploads).filter((left) => left !== undefined);
  return known.length === 0 ? undefined : String(known.reduce((sum, left) => sum + left, 0n));
}

/** "16,308,527 of 16,777,216 free (97 %)"; a filesystem without an inode count has no limit. */
export function inodesLeftText({
  inode_free: free,
  inode_total: total,
}: Pick<LiveNode, "inode_free" | "inode_total">): string {
  if (free === null || total === null) return UNKNOWN;
  if (Number(total) === 0) return "as many as are needed";
  const share = percentText((Number(free) / Number(total)) * 100);
  return `${Number(free).toLocaleString()} of ${Number(total).toLocaleString()} free (${share})`;
}

/** The disk that is full first: its node, if any, and a sentence. */
export interface FirstFull {
  readonly node: LiveNode | undefined;
  readonly text: string;
}

/** Nodes that refuse uploads come first, then forecasts; missing forecasts are mentioned. */
export function fillsFirst(nodes: readonly LiveNode[]): FirstFull {
  const full = nodes.filter(refusesUploads);
  if (full.length > 0) {
    const others =
      full.length === 1 ? "" : `, and so ${full.length === 2 ? "does" : "do"} ${full.length - 1} more`;
    return { node: full[0], text: `refuses uploads now${others}` };
  }
  const unknown = nodes.filter(isForecastMissing).length;
  const first = soonestFull(nodes);
  if (first !== undefined) {
    const more = unknown === 0 ? "" : `; of ${countText(unknown, "other")} it is not known yet`;
    return { node: first, text: `${formatDaysUntil(first.disk_full_in_days ?? 0)}${more}` };
  }
  if (unknown === 0) return { node: undefined, text: "no disk is filling" };
  return {
    node: undefined,
    text: `not known yet: that takes six hours of answers${unknown === nodes.length ? "" : ` of every node`}`,
  };
}

/** Older consoles do not report it: then nothing is mentioned. */
function isForecastMissing(node: LiveNode): boolean {
  return node.disk_forecast_known === false && node.status !== "offline";
}

function soonestFull(nodes: readonly LiveNode[]): LiveNode | undefined {
  let first: LiveNode | undefined;
  for (const node of nodes) {
    if (node.disk_full_in_days === undefined) continue;
    if (first === undefined || node.disk_full_in_days < (first.disk_full_in_days ?? 0)) first = node;
  }
  return first;
}
