// What kinds of alerts there are: whether they are states or happenings, when they end, and who may see what of them (D11, D22, D24).
import type { AlertType } from "#wire/webapi/alert.ts";

/** A node that has stayed up for so long since a restart is over it (D11). */
export const RESTART_OVER_MS: number = 10 * 60_000;
/** An alert about an attempt, such as a session from another address, ends when none followed for so long. */
const ATTEMPT_OVER_MS: number = 24 * 3_600_000;

/**
 * Why visitors do not see alerts of a type. "users": it names one, or there is one because of what users have; so it is not counted for
 * visitors either. "attempt": somebody tries or has tampered, and would learn that it was noticed, from a count too. "opening": it says
 * where the cluster is open; how many such there are tells nobody where, and depends neither on users nor on attempts, so it is counted.
 */
export type HiddenBecause = "users" | "attempt" | "opening";

/** What visitors learn of alerts of a type: the fact, with the details named here and no others, or nothing of it (spec 5.8.4, D22). */
type Visibility =
  | {
      readonly publicDetail: readonly string[];
      /** True where the measured value is about what users have. */
      readonly hidesValue?: true;
      /** True where the key names an address: visitors get the type in its place. */
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
  /** True when it is about a single user, of whom there may be many. */
  readonly isAboutUser?: boolean;
  /** True when it stands as long as its condition, whatever an operator says (T10). */
  readonly isPermanent?: boolean;
  /** Of a happening: it is over when none followed for so long. Without it, an operator resolves it. Unused for states. */
  readonly overAfterMs?: number;
  /** Type of the info record that tells of its end; undefined when the end is no news. */
  readonly recovery?: AlertType;
};

/** Whether visitors see a type is said here and nowhere else (W-09); docs/reference.md tells the same. */
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

/** The key of a condition: its type, and what it is about (spec 3.3). */
export function alertKey(type: AlertType, about?: string): string {
  return about === undefined ? type : `${type}:${about}`;
}
