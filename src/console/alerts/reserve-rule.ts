// The rule about what is left above a disk's reserve: the percentages of spec 3.1 say nothing of it, and uploads end there (spec 4.6.3).
import { toJson64 } from "#base/json64.ts";
import type { Condition } from "./condition.ts";

/**
 * What is left above a disk's reserve when there is an alert: bytes, but no more than a share of all that the disk has above it; and days
 * at the present pace. Crossed when there is less.
 */
const RESERVE_ALERT = {
  bytes: { warning: 10_737_418_240, critical: 1_073_741_824 },
  sharePercent: { warning: 10, critical: 1 },
  days: { warning: 7, critical: 1 },
} as const;
/** What is left must be so many times the limit before such an alert is over: what hovers there would come and go with every poll. */
const RESERVE_ALERT_SLACK = 1.25;

/** What a node reports of its disk. Null is unknown. */
export interface ReserveGauges {
  readonly diskFreeBytes: bigint | null;
  readonly diskTotalBytes: bigint | null;
  readonly reserveBytes: bigint | null;
}

type Grade = Pick<Condition, "level" | "keepsCritical">;

/** From what is well to what is worst. */
const GRADES = ["clear", "hold", "warning", "keeps", "critical"] as const;

/**
 * Where a disk stands by what is left above its reserve: by bytes, by days at the present pace, and critical when nothing is left, since
 * uploads are refused from then on. What has come back hardly above a limit changes nothing.
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

/** On a small disk, or one that keeps most of itself free, a share of what is above the reserve takes the place of the bytes. */
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
