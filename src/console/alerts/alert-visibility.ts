// What visitors see of each type of alert: all but some details, a count, or nothing (spec 5.8.4, D22).
import type { AlertType } from "#wire/webapi/alert.ts";

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

/** The type of an alert, and whether it is about users. */
interface Subject {
  readonly type: AlertType;
  readonly username?: string | undefined;
  readonly isOfUsers?: boolean | undefined;
}

/** The only place that decides what visitors see of a type (W-09); docs/reference.md lists the same. */
export const ALERT_VISIBILITY: Readonly<Record<AlertType, Visibility>> = {
  node_offline: { publicDetail: ["last_seen", "away_seconds"] },
  node_online: { publicDetail: ["away_seconds"] },
  storage_warning: { publicDetail: ["free_bytes", "total_bytes", "full_in_days"] },
  temp_warning: { publicDetail: [] },
  quota_exceeded: { hidden: "users" },
  error_spike: { publicDetail: ["operations", "errors"] },
  service_restart: { publicDetail: ["machine"] },
  ip_mismatch: { hidden: "users" },
  mock_token: { hidden: "attempt" },
  auth_mock: { hidden: "opening" },
  default_password: { hidden: "opening" },
  host_key_changed: { hidden: "attempt" },
  cert_expiring: { publicDetail: [] },
  clock_skew: { publicDetail: [] },
  quota_drift: { publicDetail: [], hidesValue: true },
  corruption: { publicDetail: [], hidesValue: true },
  storage_failed: { publicDetail: [] },
  storage_reserve: { publicDetail: ["usable_bytes", "reserve_bytes", "full_in_days"] },
  inodes_low: { publicDetail: ["free_inodes"] },
  metaserver_offline: { publicDetail: ["last_seen", "away_seconds", "others"], hidesKey: true },
  snapshot_reset: { publicDetail: [] },
  action_failed: { hidden: "opening" },
  login_failures: { hidden: "attempt" },
  bad_metrics: { publicDetail: [] },
  audit_broken: { hidden: "attempt" },
  node_restored: { hidden: "users" },
};

/** True when visitors see alerts like this one. */
export function isPublic(alert: Subject): boolean {
  return (
    ALERT_VISIBILITY[alert.type].hidden === undefined &&
    alert.username === undefined &&
    alert.isOfUsers !== true
  );
}

/** True when visitors see only the count, which depends on neither users nor attempts. */
export function isCounted(alert: Subject): boolean {
  return (
    ALERT_VISIBILITY[alert.type].hidden === "opening" &&
    alert.username === undefined &&
    alert.isOfUsers !== true
  );
}
