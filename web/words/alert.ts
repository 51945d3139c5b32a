// Alerts in words: types, values and limits.
import type { AlertRecord, AlertType, Severity } from "#wire/webapi/alert.ts";
import { countText, percentText, plainNumber } from "./number.ts";

/** Severities in filters, gravest first. */
export const SEVERITY_ORDER: Severity[] = ["critical", "warning", "info"];

/** Sorts by severity; stable within one. */
export function gravestFirst(alerts: readonly AlertRecord[]): AlertRecord[] {
  return alerts.toSorted((a, b) => SEVERITY_ORDER.indexOf(a.severity) - SEVERITY_ORDER.indexOf(b.severity));
}

/** Labels of types in filters. */
export const TYPE_LABELS: Readonly<Record<AlertType, string>> = {
  node_offline: "Node offline",
  node_online: "Node online again",
  storage_warning: "Disk full",
  temp_warning: "Temperature",
  quota_exceeded: "Quota",
  error_spike: "Failing operations",
  service_restart: "Unexpected restart",
  ip_mismatch: "Session from another address",
  mock_token: "Mock token rejected",
  auth_mock: "Mock sign-in allowed",
  default_password: "Built-in password",
  host_key_changed: "SSH host key changed",
  cert_expiring: "Certificate ends",
  clock_skew: "Clock off",
  quota_drift: "Quota counters off",
  corruption: "Damaged files",
  storage_failed: "Storage failed",
  storage_reserve: "Disk at its reserve",
  inodes_low: "Inodes run out",
  metaserver_offline: "MetaServer offline",
  snapshot_reset: "Console file begun anew",
  action_failed: "Action failed",
  login_failures: "Failed sign-ins",
  bad_metrics: "Values that cannot be",
  audit_broken: "Audit log changed",
  node_restored: "Node restored",
};

/** A value of an alert in its unit; undefined where a number alone is meaningless. */
export function measureText(type: AlertRecord["type"], value: number | undefined): string | undefined {
  if (value === undefined) return undefined;
  switch (type) {
    case "storage_warning":
    case "inodes_low":
    case "error_spike":
    case "quota_exceeded":
      return percentText(value);
    case "temp_warning":
      return `${plainNumber(value)} °C`;
    default:
      return undefined;
  }
}

/**
 * The end of a sentence about open alerts when none needs action, limited to those that the viewer may see.
 */
export function nothingOpen(
  summary: { readonly total: number; readonly for_operators?: number | undefined } | undefined,
): string {
  const notes = summary?.total ?? 0;
  if (notes > 0) return `nothing but ${countText(notes, "note")} is open`;
  // Visitors do not see alerts about users.
  return summary !== undefined && summary.for_operators === undefined
    ? "no alert is open"
    : "no alert about machines or the service is open";
}

/** "1 further alert is for operators"; undefined for none, and for operators. */
export function furtherAlerts(count: number | undefined): string | undefined {
  if (count === undefined || count === 0) return undefined;
  return `${countText(count, "further alert is", "further alerts are")} for operators`;
}
