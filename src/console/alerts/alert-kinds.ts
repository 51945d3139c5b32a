// The types of alerts: states or events, their end, and what visitors see of them (D11, D22, D24).
import type { AlertType } from "#wire/webapi/alert.ts";

/** Uptime after which a restart counts as over (D11). */
export const RESTART_OVER_MS: number = 10 * 60_000;
/** Time without a repetition after which an alert about an attempt ends. */
const ATTEMPT_OVER_MS: number = 24 * 3_600_000;

/**
 * Why visitors do not see alerts of a type. "users": it names a user or depends on users' data, so visitors'
 * counts leave it out too. "attempt": an intruder would learn of the detection, also from a count. "opening":
 * it names an open door of the cluster; its number reveals nothing, so it is counted.
 */
export type HiddenBecause = "users" | "attempt" | "opening";

/** What visitors see of a type: the fact with only the details named here, or nothing (spec 5.8.4, D22). */
type Visibility =
  | {
      readonly publicDetail: readonly string[];
      /** True where the measured value depends on users' data. */
      readonly hidesValue?: true;
      /** True where the key contains an address; visitors get the type instead. */
      readonly hidesKey?: true;
      readonly hidden?: undefined;
    }
  | {
      readonly hidden: HiddenBecause;
      readonly publicDetail?: undefined;
      readonly hidesValue?: undefined;
      readonly hidesKey?: undefined;
    };

/** The rules of one type of alert. */
type AlertKind = Visibility & {
  /** True for alerts about a single user, of which there may be many. */
  readonly isAboutUser?: boolean;
  /** True when operators cannot resolve it while its condition holds (T10). */
  readonly isPermanent?: boolean;
  /**
   * For events: ends this long after the last one; without it, an operator resolves it. Unused for states.
   */
  readonly overAfterMs?: number;
  /** Type of the info record about its end; undefined when the end makes no record. */
  readonly recovery?: AlertType;
};

/** The only place that decides what visitors see of a type (W-09); docs/reference.md lists the same. */
export const ALERT_KINDS: Readonly<Record<AlertType, AlertKind>> = {
  node_offline: { publicDetail: ["last_seen", "away_seconds"], recovery: "node_online" },
  node_online: { publicDetail: ["away_seconds"] },
  storage_warning: {
    publicDetail: ["free_bytes", "total_bytes", "full_in_days"],
    recovery: "storage_warning",
  },
  temp_warning: { publicDetail: [], recovery: "temp_warning" },
  quota_exceeded: { hidden: "users", isAboutUser: true, recovery: "quota_exceeded" },
  error_spike: { publicDetail: ["operations", "errors"], recovery: "error_spike" },
  service_restart: { publicDetail: ["machine"], overAfterMs: RESTART_OVER_MS, recovery: "service_restart" },
  ip_mismatch: { hidden: "users", isAboutUser: true, overAfterMs: ATTEMPT_OVER_MS },
  mock_token: { hidden: "attempt" },
  auth_mock: { hidden: "opening", isPermanent: true, recovery: "auth_mock" },
  default_password: { hidden: "opening", isPermanent: true, recovery: "default_password" },
  host_key_changed: { hidden: "attempt" },
  cert_expiring: { publicDetail: [], recovery: "cert_expiring" },
  clock_skew: { publicDetail: [], recovery: "clock_skew" },
  quota_drift: { publicDetail: [], hidesValue: true, recovery: "quota_drift" },
  corruption: { publicDetail: [], hidesValue: true, recovery: "corruption" },
  storage_failed: { publicDetail: [], recovery: "storage_failed" },
  storage_reserve: {
    publicDetail: ["usable_bytes", "reserve_bytes", "full_in_days"],
    recovery: "storage_reserve",
  },
  inodes_low: { publicDetail: ["free_inodes"], recovery: "inodes_low" },
  metaserver_offline: {
    publicDetail: ["last_seen", "away_seconds", "others"],
    hidesKey: true,
    recovery: "metaserver_offline",
  },
  snapshot_reset: { publicDetail: [] },
  action_failed: { hidden: "opening", overAfterMs: ATTEMPT_OVER_MS },
  login_failures: { hidden: "attempt", overAfterMs: ATTEMPT_OVER_MS },
  bad_metrics: { publicDetail: [], recovery: "bad_metrics" },
  audit_broken: { hidden: "attempt" },
  node_restored: { hidden: "users" },
};

/** The key of a condition: its type and its subject (spec 3.3). */
export function alertKey(type: AlertType, about?: string): string {
  return about === undefined ? type : `${type}:${about}`;
}
