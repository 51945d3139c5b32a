// The rules for nodes: reported values to conditions, by the thresholds (spec 3.1, 3.3, 8; D11, D24).
import { toJson64 } from "#base/json64.ts";
import { ALERT_THRESHOLDS, CERTIFICATE_WARNING_DAYS, ERROR_RATE_MIN_OPERATIONS } from "#base/limits.ts";
import type { AlertType } from "#wire/webapi/alert.ts";
import { publicNode } from "#wire/webapi/cluster.ts";
import { alertKey } from "./alert-kinds.ts";
import type { Condition } from "./condition.ts";
import { reserveLevel } from "./reserve-rule.ts";

/** Free share of a filesystem's inodes in percent below which an alert is raised. */
const INODES_FREE_ALERT_PERCENT = { warning: 10, critical: 3 } as const;
/** Difference of clocks above which a node gets an alert (D24). */
const CLOCK_SKEW_ALERT_MS = 60_000;
/** Days before a certificate's end from which its alert is critical. */
const CERTIFICATE_CRITICAL_DAYS = 2;

/** The reported values that the rules use. Null is unknown. */
export interface NodeGauges {
  readonly diskUsagePercent: number | null;
  readonly diskFreeBytes: bigint | null;
  readonly diskTotalBytes: bigint | null;
  /** Free space that no write may take. */
  readonly reserveBytes: bigint | null;
  readonly inodeFree: bigint | null;
  /** 0 on a filesystem that makes inodes as they are needed. */
  readonly inodeTotal: bigint | null;
  readonly cpuTempCelsius: number | null;
  readonly certDaysLeft: number | null;
  readonly clockSkewMs: number | null;
  /** May be below zero. */
  readonly quotaDriftBytes: bigint | null;
  /** Null from a node that does not count them. */
  readonly driftedCounters: number | null;
  readonly storageFailed: boolean | null;
  readonly damagedFileCount: number | null;
  /** True when the node accepts mock tokens (spec 5.7). */
  readonly authMock: boolean | null;
  readonly invalidFields: readonly string[];
}

/** Attempts and failures of a node in the last 60 s (T4). */
export interface ErrorWindow {
  readonly errors: number;
  readonly ops: number;
  /** Failures of a run without a success, over a minute and more; 0 without such a run. */
  readonly failingRun: number;
  /** True when the node answered for the whole window, so that no failure can be missing. */
  readonly isFull: boolean;
}

/** The node that a condition is about. */
export interface NodeName {
  readonly id: string;
  readonly name: string;
}

/**
 * Fields that visitors may see. Whether another field is valid may depend on a node's users, so those have an
 * alert of their own.
 */
const SHOWN_TO_ALL: ReadonlySet<string> = new Set(Object.keys(publicNode.shape));

/** The level of a value between two thresholds, both crossed only when exceeded. */
export function gradeOf(
  value: number | null,
  thresholds: { readonly warning: number; readonly critical: number },
): Pick<Condition, "level" | "value" | "threshold" | "keepsCritical"> {
  if (value === null || Number.isNaN(value)) return { level: "unknown" };
  const { warning, critical } = thresholds;
  if (value > critical) return { level: "critical", value, threshold: critical };
  if (value > warning)
    return { level: "warning", value, threshold: warning, keepsCritical: value === critical };
  return { level: value === warning ? "hold" : "clear", value, threshold: warning };
}

/** Every condition of a node that has answered. */
export function nodeConditions(
  node: NodeName,
  gauges: NodeGauges,
  more: { readonly window: ErrorWindow; readonly fullInDays: number | undefined },
): Condition[] {
  const about = (type: AlertType, rest: Omit<Condition, "key" | "type">): Condition => ({
    key: alertKey(type, node.id),
    type,
    nodeId: node.id,
    nodeName: node.name,
    ...rest,
  });
  return [
    about("storage_warning", storage(gauges, more.fullInDays)),
    about("storage_reserve", reserveLevel(gauges, more.fullInDays)),
    about("inodes_low", inodes(gauges)),
    about("temp_warning", gradeOf(gauges.cpuTempCelsius, ALERT_THRESHOLDS.temperatureCelsius)),
    about("error_spike", errors(more.window)),
    about("cert_expiring", certificate(gauges.certDaysLeft)),
    about("clock_skew", clockSkew(gauges.clockSkewMs)),
    about("quota_drift", drift(gauges)),
    about("corruption", above(gauges.damagedFileCount, "critical")),
    about("storage_failed", flag(gauges.storageFailed, "critical")),
    about("auth_mock", flag(gauges.authMock, "warning")),
    about("bad_metrics", invalid(gauges.invalidFields.filter((field) => SHOWN_TO_ALL.has(field)))),
    {
      ...about("bad_metrics", invalid(gauges.invalidFields.filter((field) => !SHOWN_TO_ALL.has(field)))),
      key: `${alertKey("bad_metrics", node.id)}:users`,
      isOfUsers: true,
    },
  ];
}

/**
 * The condition of a node's absence (spec 3.3, T5). `isOffline` is its status by the 30 s rule; a stale node
 * that is not offline yet is unknown.
 */
export function offlineCondition(
  node: NodeName,
  now: {
    readonly isOffline: boolean;
    readonly isStale: boolean;
    /** Unix seconds of the last good answer; 0 for none. */
    readonly lastSeen: number;
    /** Why it does not answer, for operators. */
    readonly reason?: string | undefined;
    /** Users with a root there; null while unknown. */
    readonly users: number | null;
    /** Duration of the absence, once the node answers again. */
    readonly awaySeconds: number | undefined;
  },
): Condition {
  const about = {
    key: alertKey("node_offline", node.id),
    type: "node_offline",
    nodeId: node.id,
    nodeName: node.name,
  } as const;
  if (now.isOffline) {
    const detail = {
      last_seen: now.lastSeen,
      ...(now.users === null ? {} : { users: now.users }),
      ...(now.reason === undefined ? {} : { reason: now.reason }),
    };
    return { ...about, level: "critical", detail };
  }
  if (now.isStale) return { ...about, level: "unknown" };
  return {
    ...about,
    level: "clear",
    detail: now.awaySeconds === undefined ? {} : { away_seconds: now.awaySeconds },
  };
}

/** Holders of certificates beside nodes; no node's id has a blank. */
const HOLDERS = {
  console: { about: undefined, name: "the console" },
  metaserver: { about: "a metaserver", name: "a MetaServer" },
  authority: { about: "the authority", name: "the cluster's authority" },
} as const;

/**
 * The condition of a certificate that is no node's, by its whole days left: null while unknown, undefined where
 * nobody has one.
 */
export function certificateCondition(
  holder: keyof typeof HOLDERS,
  daysLeft: number | null | undefined,
): Condition {
  const { about, name } = HOLDERS[holder];
  return {
    key: alertKey("cert_expiring", about),
    type: "cert_expiring",
    nodeName: name,
    ...(holder === "authority" ? { detail: { authority: 1 } } : {}),
    ...(daysLeft === undefined ? { level: "clear" } : certificate(daysLeft)),
  };
}

/** The fewest days of several: of unknown ones one may have fewer, so that none is clear for their sake. */
export function fewestDays(all: readonly (number | null)[]): number | null | undefined {
  if (all.length === 0) return undefined;
  const known = all.filter((days) => days !== null);
  const fewest = Math.min(...known);
  return known.length < all.length && !(fewest < CERTIFICATE_WARNING_DAYS) ? null : fewest;
}

type Level = Omit<Condition, "key" | "type">;

function storage(gauges: NodeGauges, fullInDays: number | undefined): Level {
  const { diskFreeBytes: free, diskTotalBytes: total } = gauges;
  return {
    ...gradeOf(gauges.diskUsagePercent, ALERT_THRESHOLDS.storagePercent),
    detail: {
      ...(free === null ? {} : { free_bytes: toJson64(free) }),
      ...(total === null ? {} : { total_bytes: toJson64(total) }),
      ...(fullInDays === undefined ? {} : { full_in_days: Math.round(fullInDays * 10) / 10 }),
    },
  };
}

/** A filesystem without a number of inodes cannot run out of them. */
function inodes({ inodeFree: free, inodeTotal: total }: NodeGauges): Level {
  if (free === null || total === null) return { level: "unknown" };
  if (total === 0n) return { level: "clear" };
  const { warning, critical } = INODES_FREE_ALERT_PERCENT;
  const parts = (percent: number): bigint => total * BigInt(percent);
  const left = free * 100n;
  const isCritical = left < parts(critical);
  return {
    level: isCritical
      ? "critical"
      : left < parts(warning)
        ? "warning"
        : left === parts(warning)
          ? "hold"
          : "clear",
    keepsCritical: left === parts(critical),
    value: Number((free * 10_000n) / total) / 100,
    threshold: isCritical ? critical : warning,
    detail: { free_inodes: toJson64(free) },
  };
}

/** Few attempts give no rate (T4), unless all fail for a while; a full minute without failures is clear. */
function errors({ errors: failed, ops, isFull, failingRun }: ErrorWindow): Level {
  if (ops < ERROR_RATE_MIN_OPERATIONS && failingRun > 0) {
    return {
      ...gradeOf(100, ALERT_THRESHOLDS.errorRatePercent),
      detail: { errors: failingRun, operations: failingRun },
    };
  }
  if (ops < ERROR_RATE_MIN_OPERATIONS && (failed > 0 || !isFull)) return { level: "unknown" };
  const percent = failed <= 0 ? 0 : Math.min(100, (failed / ops) * 100);
  return {
    ...gradeOf(percent, ALERT_THRESHOLDS.errorRatePercent),
    detail: { errors: failed, operations: ops },
  };
}

function certificate(daysLeft: number | null): Level {
  if (daysLeft === null) return { level: "unknown" };
  const level =
    daysLeft < CERTIFICATE_CRITICAL_DAYS
      ? "critical"
      : daysLeft < CERTIFICATE_WARNING_DAYS
        ? "warning"
        : "clear";
  return {
    level,
    value: daysLeft,
    threshold: level === "critical" ? CERTIFICATE_CRITICAL_DAYS : CERTIFICATE_WARNING_DAYS,
  };
}

function clockSkew(skewMs: number | null): Level {
  if (skewMs === null) return { level: "unknown" };
  const off = Math.abs(skewMs);
  const level = off > CLOCK_SKEW_ALERT_MS ? "warning" : off === CLOCK_SKEW_ALERT_MS ? "hold" : "clear";
  return { level, value: skewMs, threshold: CLOCK_SKEW_ALERT_MS };
}

/** Drift found by a recount: in bytes, or only in counters of files and entries. */
function drift({ quotaDriftBytes, driftedCounters }: NodeGauges): Level {
  if (quotaDriftBytes === null) return { level: "unknown" };
  const value = Math.abs(Number(quotaDriftBytes));
  return { level: value > 0 || (driftedCounters ?? 0) > 0 ? "warning" : "clear", value, threshold: 0 };
}

function above(value: number | null, level: "warning" | "critical"): Level {
  if (value === null) return { level: "unknown" };
  return { level: value > 0 ? level : "clear", value, threshold: 0 };
}

function flag(value: boolean | null, level: "warning" | "critical"): Level {
  return { level: value === null ? "unknown" : value ? level : "clear" };
}

/** Field names come from our own schema, so they may be shown; at most a few of them. */
function invalid(fields: readonly string[]): Level {
  const shown = fields.slice(0, 5).join(", ");
  return {
    level: fields.length > 0 ? "warning" : "clear",
    value: fields.length,
    threshold: 0,
    detail:
      fields.length === 0
        ? {}
        : { fields: fields.length > 5 ? `${shown} and ${fields.length - 5} more` : shown },
  };
}
