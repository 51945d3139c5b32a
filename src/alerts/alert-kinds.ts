// What kinds of alerts there are: whether they are states or happenings, when they end, and who may see what of them (D11, D22, D24).
import { ATTEMPT_OVER_MS, RESTART_OVER_MS } from "#base/limits.ts";
import type { AlertType } from "#webapi/alert.ts";

/** The rules of one type of alert. */
interface AlertKind {
  /** What visitors may know of it: the names of its details that are about hardware. Undefined: nothing at all, not even that there is one. */
  readonly publicDetail?: readonly string[];
  /** True when it is about a single user, of whom there may be many. */
  readonly isAboutUser?: boolean;
  /** True when it stands as long as its condition, whatever an operator says (T10). */
  readonly isPermanent?: boolean;
  /** Of a happening: it is over when none followed for so long. Without it, an operator resolves it. Unused for states. */
  readonly overAfterMs?: number;
  /** Type of the info record that tells of its end; undefined when the end is no news. */
  readonly recovery?: AlertType;
}

/** Visitors' rows are an allow-list (D-09): what has no publicDetail here is never shown to them. */
export const ALERT_KINDS: Readonly<Record<AlertType, AlertKind>> = {
  node_offline: { publicDetail: ["last_seen", "away_seconds"], recovery: "node_online" },
  node_online: { publicDetail: ["away_seconds"] },
  storage_warning: {
    publicDetail: ["free_bytes", "total_bytes", "full_in_days"],
    recovery: "storage_warning",
  },
  temp_warning: { publicDetail: [], recovery: "temp_warning" },
  quota_exceeded: { isAboutUser: true, recovery: "quota_exceeded" },
  error_spike: { publicDetail: ["operations", "errors"], recovery: "error_spike" },
  service_restart: { publicDetail: ["machine"], overAfterMs: RESTART_OVER_MS, recovery: "service_restart" },
  ip_mismatch: { isAboutUser: true, overAfterMs: ATTEMPT_OVER_MS },
  mock_token: {},
  auth_mock: { isPermanent: true, recovery: "auth_mock" },
  default_password: { isPermanent: true, recovery: "default_password" },
  host_key_changed: {},
  cert_expiring: { publicDetail: [], recovery: "cert_expiring" },
  clock_skew: { publicDetail: [], recovery: "clock_skew" },
  quota_drift: { recovery: "quota_drift" },
  corruption: { recovery: "corruption" },
  storage_failed: { publicDetail: [], recovery: "storage_failed" },
  snapshot_reset: {},
  action_failed: { overAfterMs: ATTEMPT_OVER_MS },
  login_failures: { overAfterMs: ATTEMPT_OVER_MS },
  bad_metrics: { recovery: "bad_metrics" },
  audit_broken: {},
};

/** The key of a condition: its type, and what it is about (spec 3.3). */
export function alertKey(type: AlertType, about?: string): string {
  return about === undefined ? type : `${type}:${about}`;
}
