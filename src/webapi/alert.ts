// The alert record and what the routes below /api/alerts take and give (spec 2.6, decision D11).
import { z } from "zod";

/** Severities, the worst first (spec 2.6). */
export const SEVERITIES = ["critical", "warning", "info"] as const;

/** One of the severities. */
export type Severity = (typeof SEVERITIES)[number];

/** Types of alerts: those of spec 3.3, then those of decision D11. */
export const ALERT_TYPES = [
  "node_offline",
  "node_online",
  "storage_warning",
  "temp_warning",
  "quota_exceeded",
  "error_spike",
  "service_restart",
  "ip_mismatch",
  "mock_token",
  "auth_mock",
  "default_password",
  "host_key_changed",
  "cert_expiring",
  "clock_skew",
  "quota_drift",
  "corruption",
  "storage_failed",
  "snapshot_reset",
  "action_failed",
  "login_failures",
  "bad_metrics",
] as const;

/** One of the types of alerts. */
export type AlertType = (typeof ALERT_TYPES)[number];

/** An alert record: spec 2.6 and the additional fields of decision D11. Times are unix seconds. */
export const alertRecord = z.object({
  id: z.string(),
  timestamp: z.int(),
  severity: z.enum(SEVERITIES),
  type: z.enum(ALERT_TYPES),
  title: z.string(),
  message: z.string(),
  node_id: z.string().optional(),
  node_name: z.string().optional(),
  username: z.string().optional(),
  resolved: z.boolean(),
  resolved_at: z.int().optional(),
  key: z.string(),
  value: z.number().optional(),
  threshold: z.number().optional(),
  raised_count: z.int(),
  acked_by: z.string().optional(),
  acked_at: z.int().optional(),
  resolved_by: z.enum(["auto", "operator"]).optional(),
});

/** An alert as it is sent and kept. */
export type AlertRecord = z.infer<typeof alertRecord>;

/** GET /api/alerts. */
export const alertList = z.object({ alerts: z.array(alertRecord), total: z.int() });

/** GET /api/alerts/summary: unresolved alerts by severity. */
export const alertSummary = z.object({
  critical: z.int(),
  warning: z.int(),
  info: z.int(),
  total: z.int(),
});

/** POST /api/alerts/resolve, and /api/alerts/ack. */
export const alertChoice = z
  .object({
    id: z.string().optional(),
    ids: z.array(z.string()).max(1000).optional(),
    key: z.string().optional(),
  })
  .strict();

/** What /api/alerts/resolve answers. */
export const alertsResolved = z.object({
  resolved: z.array(z.string()),
  already_resolved: z.array(z.string()),
});

/** POST /api/alerts/resolve-all. */
export const resolveAll = z
  .object({ severity: z.enum(SEVERITIES).optional(), node_id: z.string().optional() })
  .strict();
