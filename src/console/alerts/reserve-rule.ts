// The rule for free space above a disk's reserve, where uploads end (spec 4.6.3), unlike spec 3.1.
import { toJson64 } from "#base/json64.ts";
import type { Condition } from "./condition.ts";

/**
 * Free space above the reserve below which an alert is raised: bytes, limited to a share of the disk above
 * its reserve, and days at the recent pace.
 */
const RESERVE_ALERT = {
  bytes: { warning: 10_737_418_240, critical: 1_073_741_824 },
  sharePercent: { warning: 10, critical: 1 },
  days: { warning: 7, critical: 1 },
} as const;
/** Factor above the limit at which the alert is over, so that a value at the limit does not flap. */
const RESERVE_ALERT_SLACK = 1.25;

/** A node's reported disk. Null is unknown. */
export interface ReserveGauges {
  readonly diskFreeBytes: bigint | null;
  readonly diskTotalBytes: bigint | null;
  readonly reserveBytes: bigint | null;
}

type Grade = Pick<Condition, "level" | "keepsCritical">;

/** From best to worst. */
const GRADES = ["clear", "hold", "warning", "keeps", "critical"] as const;

/**
 * The level of a disk by the free space above its reserve: by bytes, by days at the recent pace, and critical
 * at zero, where uploads are refused. A value only slightly above a limit changes nothing.
 */
export function reserveLevel(
  { diskFreeBytes: free, diskTotalBytes: total, reserveBytes: reserve }: ReserveGauges,
  fullInDays: number | undefined,
): Omit<Condition, "key" | "type"> {
  if (free === null || reserve === null) return { level: "unknown" };
  const usableBytes = free > reserve ? free - reserve : 0n;
  const limits = limitsOf(total === null ? undefined : Number(total - reserve));
  const byBytes = usableBytes === 0n ? "critical" : gradeBelow(Number(usableBytes), limits);
  const byDays = fullInDays === undefined ? "clear" : gradeBelow(fullInDays, RESERVE_ALERT.days);
  const grade = gradeOf(GRADES.indexOf(byBytes) > GRADES.indexOf(byDays) ? byBytes : byDays);
  return {
    ...grade,
    value: Number(usableBytes),
    threshold: grade.level === "critical" ? limits.critical : limits.warning,
    detail: {
      usable_bytes: toJson64(usableBytes),
      reserve_bytes: toJson64(reserve),
      ...(fullInDays === undefined ? {} : { full_in_days: Math.round(fullInDays * 10) / 10 }),
    },
  };
}

/** On a small disk, or with a large reserve, a share of the space above it replaces the bytes. */
function limitsOf(aboveBytes: number | undefined): { warning: number; critical: number } {
  const { bytes, sharePercent } = RESERVE_ALERT;
  const capped = (level: "warning" | "critical"): number =>
    aboveBytes === undefined
      ? bytes[level]
      : Math.min(bytes[level], Math.max(0, Math.floor((aboveBytes * sharePercent[level]) / 100)));
  return { warning: capped("warning"), critical: capped("critical") };
}

function gradeBelow(
  left: number,
  { warning, critical }: { readonly warning: number; readonly critical: number },
): (typeof GRADES)[number] {
  if (left < critical) return "critical";
  if (left <= critical * RESERVE_ALERT_SLACK) return "keeps";
  if (left < warning) return "warning";
  return left <= warning * RESERVE_ALERT_SLACK ? "hold" : "clear";
}

function gradeOf(grade: (typeof GRADES)[number]): Grade {
  return grade === "keeps" ? { level: "warning", keepsCritical: true } : { level: grade };
}
