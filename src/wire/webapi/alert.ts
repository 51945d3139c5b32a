// The alert record, and requests and replies below /api/alerts (spec 2.6, decision D11).
import { z } from "zod";
import { ALERTS_PAGE_MAX } from "#base/limits.ts";

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
  "storage_reserve",
  "inodes_low",
  "metaserver_offline",
  "snapshot_reset",
  "action_failed",
  "login_failures",
  "bad_metrics",
  "audit_broken",
  "node_restored",
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
  /** For operators: the command that addresses the alert, ready to copy. */
  command: z.string().optional(),
});

/** An alert as it is sent and kept. */
export type AlertRecord = z.infer<typeof alertRecord>;

/** One value, several separated by commas, or a repeated parameter. */
function listOf<Value extends string>(
  values: readonly [Value, ...Value[]],
): z.ZodType<Value[] | undefined, string | string[] | undefined> {
  return z
    .union([z.string().max(1_000), z.array(z.string().max(1_000)).max(50)])
    .transform((given) => [given].flat().flatMap((text) => text.split(",")))
    .pipe(z.array(z.enum(values)))
    .optional();
}

/** The query of GET /api/alerts (decision D11). Newest first; `limit` is 1,000 by default. */
export const alertQuery = z.strictObject({
  severity: listOf(SEVERITIES),
  type: listOf(ALERT_TYPES),
  node_id: z.string().max(64).optional(),
  /** true or 1: only unresolved alerts. */
  unresolved: z.enum(["true", "1", "false", "0"]).optional(),
  /** true or 1: only those that have ended. */
  resolved: z.enum(["true", "1", "false", "0"]).optional(),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, `a whole number from 1 to ${ALERTS_PAGE_MAX}`)
    .transform(Number)
    .pipe(z.int().max(ALERTS_PAGE_MAX))
    .optional(),
  /** Alerts raised before this one: the id of the previous page's last alert, or unix seconds. */
  before: z
    .string()
    .regex(/^(?:[0-9A-HJKMNP-TV-Z]{26}|\d{1,11})$/, "the id of an alert, or unix seconds")
    .optional(),
});

/** GET /api/alerts; the total counts all alerts that pass the filters. */
export const alertList = z.object({ alerts: z.array(alertRecord), total: z.int() });

/** GET /api/alerts/summary: unresolved alerts by severity. */
export const alertSummary = z.object({
  critical: z.int(),
  warning: z.int(),
  info: z.int(),
  total: z.int(),
  /**
   * For visitors: the number of further open alerts for operators, without those about users and attempts.
   */
  for_operators: z.int().optional(),
});

/** POST /api/alerts/resolve, and /api/alerts/ack: at least one of the three. */
export const alertChoice = z
  .strictObject({
    id: z.string().max(64).optional(),
    ids: z.array(z.string().max(64)).min(1).max(1000).optional(),
    key: z.string().max(512).optional(),
  })
  .refine(({ id, ids, key }) => id !== undefined || ids !== undefined || key !== undefined, {
    error: "id, ids or key is needed",
  });

/** The reply of /api/alerts/resolve. */
export const alertsResolved = z.object({
  resolved: z.array(z.string()),
  already_resolved: z.array(z.string()),
  /** Alerts that stay open while their condition holds, such as the built-in password. */
  in_force: z.array(z.string()),
});

/** POST /api/alerts/resolve-all; without a body it means all. */
export const resolveAll = z
  .strictObject({ severity: z.enum(SEVERITIES).optional(), node_id: z.string().max(64).optional() })
  .nullish();

/** The reply of /api/alerts/resolve-all: the number of resolved alerts. */
export const allResolved = z.object({ resolved: z.int() });

/** The reply of /api/alerts/ack. */
export const alertsAcked = z.object({ acked: z.array(z.string()), already_resolved: z.array(z.string()) });
