// Filters, pages and counts alerts: one view for operators, one for visitors (decision D11, spec 5.8.4).
import type { Audience } from "#base/audience.ts";
import { ALERTS_PAGE_MAX } from "#base/limits.ts";
import type { AlertRecord, AlertType, Severity } from "#wire/webapi/alert.ts";
import type { Alert } from "./alert.ts";
import { publicRecordOf, recordOf } from "./alert-record.ts";
import { isCounted, isPublic } from "./alert-visibility.ts";

/** A filter of alerts; undefined fields filter nothing. */
export interface AlertFilter {
  readonly severities?: ReadonlySet<Severity> | undefined;
  readonly types?: ReadonlySet<AlertType> | undefined;
  readonly nodeId?: string | undefined;
  readonly isUnresolved?: boolean | undefined;
  readonly isResolved?: boolean | undefined;
}

/** Numbers of unresolved alerts. */
export type AlertCounts = Record<Severity | "total", number> & { readonly for_operators?: number };

/** A page of alerts, newest first: those before an id or raised before a moment. */
export interface AlertPage {
  readonly beforeId?: string | undefined;
  readonly beforeUnix?: number | undefined;
  /** 1 to ALERTS_PAGE_MAX, which is the default. */
  readonly limit?: number | undefined;
}

/** Lists alerts, newest first; the total counts all that pass the filter. */
export function listAlerts(
  alerts: Iterable<Alert>,
  audience: Audience,
  filter: AlertFilter,
  page: AlertPage,
): { alerts: AlertRecord[]; total: number } {
  const { beforeId, beforeUnix, limit = ALERTS_PAGE_MAX } = page;
  const listed: AlertRecord[] = [];
  let total = 0;
  for (const alert of alerts) {
    if ((audience === "visitor" && !isPublic(alert)) || !passes(alert, filter)) continue;
    total++;
    if (listed.length >= limit) continue;
    if (beforeId !== undefined && alert.id >= beforeId) continue;
    if (beforeUnix !== undefined && alert.raisedAtMs >= beforeUnix * 1000) continue;
    const record = audience === "visitor" ? publicRecordOf(alert) : recordOf(alert);
    if (record !== undefined) listed.push(record);
  }
  return { alerts: listed, total };
}

/** Counts unresolved alerts by severity; for visitors with hidden ones that reveal nothing (D22). */
export function summarizeAlerts(alerts: Iterable<Alert>, audience: Audience): AlertCounts {
  const counts = { critical: 0, warning: 0, info: 0, total: 0 };
  let hidden = 0;
  for (const alert of alerts) {
    if (alert.resolved !== undefined) continue;
    if (audience === "visitor" && !isPublic(alert)) {
      if (isCounted(alert)) hidden++;
      continue;
    }
    counts[alert.severity]++;
    counts.total++;
  }
  return audience === "visitor" ? { ...counts, for_operators: hidden } : counts;
}

/** True for an alert that passes a filter. */
export function passes(alert: Alert, filter: AlertFilter): boolean {
  const { severities, types, nodeId, isUnresolved, isResolved } = filter;
  return (
    (severities === undefined || severities.has(alert.severity)) &&
    (types === undefined || types.has(alert.type)) &&
    (nodeId === undefined || alert.nodeId === nodeId) &&
    (isUnresolved !== true || alert.resolved === undefined) &&
    (isResolved !== true || alert.resolved !== undefined)
  );
}
