// The types of alerts: about whom, states or events, their end and its record (D11, D24).
import type { AlertType } from "#wire/webapi/alert.ts";

/** Uptime after which a restart counts as over (D11). */
export const RESTART_OVER_MS: number = 10 * 60_000;
/** Time without a repetition after which an alert about an attempt ends. */
const ATTEMPT_OVER_MS: number = 24 * 3_600_000;

/** The rules of one type of alert. */
interface AlertKind {
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
}

/** The rules of each type. */
export const ALERT_KINDS: Readonly<Record<AlertType, AlertKind>> = {
  node_offline: { recovery: "node_online" },
  node_online: {},
  storage_warning: { recovery: "storage_warning" },
  temp_warning: { recovery: "temp_warning" },
  quota_exceeded: { isAboutUser: true, recovery: "quota_exceeded" },
  error_spike: { recovery: "error_spike" },
  service_restart: { overAfterMs: RESTART_OVER_MS, recovery: "service_restart" },
  ip_mismatch: { isAboutUser: true, overAfterMs: ATTEMPT_OVER_MS },
  mock_token: {},
  auth_mock: { isPermanent: true, recovery: "auth_mock" },
  default_password: { isPermanent: true, recovery: "default_password" },
  host_key_changed: {},
  cert_expiring: { recovery: "cert_expiring" },
  clock_skew: { recovery: "clock_skew" },
  quota_drift: { recovery: "quota_drift" },
  corruption: { recovery: "corruption" },
  storage_failed: { recovery: "storage_failed" },
  storage_reserve: { recovery: "storage_reserve" },
  inodes_low: { recovery: "inodes_low" },
  metaserver_offline: { recovery: "metaserver_offline" },
  snapshot_reset: {},
  action_failed: { overAfterMs: ATTEMPT_OVER_MS },
  login_failures: { overAfterMs: ATTEMPT_OVER_MS },
  bad_metrics: { recovery: "bad_metrics" },
  audit_broken: {},
  node_restored: {},
};

/** The key of a condition: its type and its subject (spec 3.3). */
export function alertKey(type: AlertType, about?: string): string {
  return about === undefined ? type : `${type}:${about}`;
}
