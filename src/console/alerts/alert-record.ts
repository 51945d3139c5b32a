// The two forms of an alert: complete for operators, an allow-list for visitors (spec 2.6, 5.8.4, D11).
import type { AlertRecord } from "#wire/webapi/alert.ts";
import type { Alert, AlertDetail } from "./alert.ts";
import { textOf } from "./alert-texts.ts";
import { ALERT_VISIBILITY, isPublic } from "./alert-visibility.ts";

/** The record as operators see it. */
export function recordOf(alert: Alert): AlertRecord {
  const { username, acked } = alert;
  const command = alert.detail?.["command"];
  return {
    ...frameOf(alert, alert.detail ?? {}, username),
    ...(username === undefined ? {} : { username }),
    ...(acked === undefined ? {} : { acked_by: acked.by, acked_at: unix(acked.atMs) }),
    ...(typeof command === "string" ? { command } : {}),
  };
}

/**
 * The record as visitors see it: without users and operators, and with texts that contain neither. Undefined
 * for alerts hidden from visitors (spec 5.8.4, D22).
 */
export function publicRecordOf(full: Alert): AlertRecord | undefined {
  const { publicDetail, hidesValue, hidesKey } = ALERT_VISIBILITY[full.type];
  const alert = hidesKey === true ? { ...full, key: full.type } : full;
  if (publicDetail === undefined || !isPublic(alert)) return undefined;
  const detail: Record<string, string | number> = {};
  for (const name of publicDetail) {
    const value = alert.detail?.[name];
    if (value !== undefined) detail[name] = value;
  }
  const { value: _value, threshold: _threshold, ...rest } = alert;
  return frameOf(hidesValue === true ? rest : alert, detail, undefined);
}

/** The fields of both forms, made from nothing but the arguments. */
function frameOf(alert: Alert, detail: AlertDetail, username: string | undefined): AlertRecord {
  const { id, key, type, severity, nodeId, nodeName, value, threshold, resolved } = alert;
  const facts = { severity, node: nodeName ?? nodeId ?? "", username, value, threshold, detail };
  return {
    id,
    timestamp: unix(alert.raisedAtMs),
    severity,
    type,
    ...textOf(type, facts, alert.isRecovery),
    ...(nodeId === undefined || nodeId === "" ? {} : { node_id: nodeId }),
    ...(nodeName === undefined || nodeName === "" ? {} : { node_name: nodeName }),
    resolved: resolved !== undefined,
    ...(resolved === undefined ? {} : { resolved_at: unix(resolved.atMs), resolved_by: resolved.by }),
    key,
    ...(value === undefined ? {} : { value }),
    ...(threshold === undefined ? {} : { threshold }),
    raised_count: alert.raisedCount,
  };
}

function unix(wallMs: number): number {
  return Math.floor(wallMs / 1000);
}
