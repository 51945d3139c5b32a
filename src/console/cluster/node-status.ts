// Grades a node by disk and temperature, and maps statuses to those of the API (spec 3.2, decisions T5, D24).
import { NODE_STATUS_THRESHOLDS } from "#base/limits.ts";
import type { NodeStatus } from "#wire/webapi/cluster.ts";
import type { KnownStatus, NodeReading } from "./cluster-state.ts";

const WORST_FIRST = ["critical", "degraded", "warning"] as const;

/**
 * The status of a node that answers: the worst whose threshold either value exceeds. A value exactly at a
 * threshold does not exceed it (D24), nor does an unknown one.
 */
export function gradeOf(
  reading: Pick<NodeReading, "diskUsagePercent" | "cpuTempCelsius">,
): Exclude<NodeStatus, "offline"> {
  const { diskUsagePercent, cpuTempCelsius } = reading;
  for (const status of WORST_FIRST) {
    const { diskPercent, temperatureCelsius } = NODE_STATUS_THRESHOLDS[status];
    if (diskUsagePercent !== null && diskUsagePercent > diskPercent) return status;
    if (cpuTempCelsius !== null && cpuTempCelsius > temperatureCelsius) return status;
  }
  return "online";
}

/**
 * The API's form of a status: one of the five of spec 3.2, which existing clients know, and a flag for
 * "unknown". Clients that ignore the flag do not take such a node for a healthy one.
 */
export function toldStatus(status: KnownStatus): { readonly status: NodeStatus; readonly unknown?: true } {
  return status === "unknown" ? { status: "offline", unknown: true } : { status };
}

/** True for a node that answered recently enough. */
export function isOnline({ status }: { readonly status: KnownStatus }): boolean {
  return status !== "offline" && status !== "unknown";
}
