// The grade of a node that answers, from its disk and its temperature, and how a status is told (spec 3.2, decisions T5, D24).
import { NODE_STATUS_THRESHOLDS } from "#base/limits.ts";
import type { NodeStatus } from "#wire/webapi/cluster.ts";
import type { KnownStatus, NodeReading } from "./cluster-state.ts";

const WORST_FIRST = ["critical", "degraded", "warning"] as const;

/**
 * The status of a node that answers: the worst whose threshold either value exceeds. Exactly at a threshold it is not yet exceeded
 * (D24), and a value that is not known exceeds none.
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
 * A status as the interface tells it: one of the five of spec 3.2, which clients may have been made from, and beside it that nothing is
 * known yet. Whoever reads the status alone does not take such a node for one that works.
 */
export function toldStatus(status: KnownStatus): { readonly status: NodeStatus; readonly unknown?: true } {
  return status === "unknown" ? { status: "offline", unknown: true } : { status };
}

/** True for a node that has answered, lately enough. */
export function isOnline({ status }: { readonly status: KnownStatus }): boolean {
  return status !== "offline" && status !== "unknown";
}
