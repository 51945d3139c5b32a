// The states of nodes and alerts in shapes, words and sentences. Colour is never alone.
import { DISK_RESERVE_BYTES } from "#base/limits.ts";
import { refusesUploads } from "./disk-room.ts";
import type { LiveNode } from "./live-node.ts";
import { bytesText, percentText, plainNumber } from "./number.ts";
import { DISK_STEPS, HEAT_STEPS } from "./thresholds.ts";
import { formatAgo, formatDaysUntil } from "./time.ts";

/** States with a shape. */
export type ShownState = "online" | "warning" | "degraded" | "critical" | "offline" | "unknown" | "info";

/** The shape of a state. */
export const SHAPES: Readonly<Record<ShownState, string>> = {
  online: "●",
  warning: "▲",
  degraded: "◆",
  critical: "■",
  offline: "○",
  unknown: "◌",
  info: "◇",
};

/** The states of a node, worst first. */
export const NODE_STATES = ["critical", "offline", "degraded", "warning", "unknown", "online"] as const;

/** The shown state of a node: unknown, not offline, until its first answer or 30 s. */
export function stateOf({
  status,
  unknown,
}: Pick<LiveNode, "status" | "unknown">): (typeof NODE_STATES)[number] {
  return unknown === true ? "unknown" : status;
}

/**
 * The reason of a node's state, in one sentence without its name. Operators also read why it does not answer.
 */
export function reasonOf(node: LiveNode, nowSeconds: number): string {
  const why = node.poll_error === undefined ? "" : `: ${node.poll_error}`;
  if (node.unknown === true) return `has not answered this console yet${why}`;
  if (node.status === "offline") {
    const when =
      node.last_seen === 0
        ? "has not answered since this console started"
        : `last answered ${formatAgo(node.last_seen, nowSeconds)}`;
    return when + why;
  }
  const reasons: string[] = [];
  if (refusesUploads(node))
    reasons.push(`refuses uploads: its disk is down to the reserve of ${bytesText(node.reserve_bytes)}`);
  const disk = node.disk_usage_percent;
  const step = disk === null ? undefined : DISK_STEPS.find((limit) => disk > limit);
  if (step !== undefined) {
    const full =
      node.disk_full_in_days === undefined
        ? ""
        : `, full ${formatDaysUntil(node.disk_full_in_days)} at this pace`;
    reasons.push(
      `disk ${percentText(disk)} full, above ${step} %, ${bytesText(node.disk_free_bytes)} free${full}`,
    );
  }
  const heat = node.cpu_temp_celsius;
  const heatStep = heat === null ? undefined : HEAT_STEPS.find((limit) => heat > limit);
  if (heatStep !== undefined) reasons.push(`processor at ${plainNumber(heat)} °C, above ${heatStep} °C`);
  if (node.storage_failed === true)
    reasons.push("its storage has failed and takes no writes until it is restarted");
  if (node.stale) reasons.push(`its last answer is from ${formatAgo(node.last_seen, nowSeconds)}${why}`);
  else if (node.poll_error !== undefined) reasons.push(node.poll_error);
  return reasons.length === 0 ? "all figures are in range" : reasons.join("; ");
}

/** One collator for all comparisons, which is many times faster; node-10 follows node-9. */
const NAMES = new Intl.Collator(undefined, { numeric: true });

/** Sorts by urgency, then by name. */
export function byNeed(a: LiveNode, b: LiveNode): number {
  return NODE_STATES.indexOf(stateOf(a)) - NODE_STATES.indexOf(stateOf(b)) || NAMES.compare(a.name, b.name);
}

/** The reserve of a node, with a note if it differs from the specification (spec 1.2). */
export function reserveText(reserve: LiveNode["reserve_bytes"]): string {
  if (reserve === null || !isUnusualReserve(reserve)) return bytesText(reserve);
  return `${bytesText(reserve)}, not the usual ${bytesText(String(DISK_RESERVE_BYTES))}`;
}

/** True for a known reserve that differs from the specification. */
export function isUnusualReserve(reserve: LiveNode["reserve_bytes"]): boolean {
  return reserve !== null && BigInt(reserve) !== DISK_RESERVE_BYTES;
}
