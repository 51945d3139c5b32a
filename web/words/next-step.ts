// Next steps for an alert: links and their labels.
import type { AlertRecord } from "#wire/webapi/alert.ts";

/** A link and its label. */
export interface NextStep {
  readonly label: string;
  readonly path: string;
}

/** The steps that usually end such an alert, best first; visitors can only look. */
export function nextSteps(alert: AlertRecord, isOperator: boolean): readonly NextStep[] {
  const { node_id: nodeId } = alert;
  const first = nextStep(alert, isOperator);
  if (alert.command !== undefined) {
    return [{ label: "What to type", path: `/alerts?type=${alert.type}` }, first];
  }
  if (!isOperator || nodeId === undefined || !ENDED_BY_RESTART.has(alert.type)) return [first];
  return [first, { label: "Restart …", path: `/actions?do=restart&node=${encodeURIComponent(nodeId)}` }];
}

const ENDED_BY_RESTART: ReadonlySet<AlertRecord["type"]> = new Set(["node_offline", "storage_failed"]);

function nextStep(alert: AlertRecord, isOperator: boolean): NextStep {
  const { node_id: nodeId, username } = alert;
  if (!isOperator) return { label: "Open", path: nodePath(nodeId) };
  const node = encodeURIComponent(nodeId ?? "");
  switch (alert.type) {
    case "quota_exceeded":
      return { label: "Raise quota …", path: `/users?user=${encodeURIComponent(username ?? "")}` };
    case "storage_warning":
    case "storage_reserve":
      return { label: "Who fills it", path: nodeId === undefined ? "/users" : `/nodes/${node}?tab=users` };
    case "service_restart":
    case "error_spike":
    case "storage_failed":
      return nodeId === undefined
        ? { label: "Open", path: "/alerts" }
        : { label: "Read its log", path: `/logs?node=${node}` };
    case "login_failures":
    case "audit_broken":
      return { label: "Open the audit log", path: "/audit" };
    case "node_restored":
      return { label: "Its users", path: `${nodePath(nodeId)}?tab=users` };
    case "metaserver_offline":
      return { label: "See what it says", path: "/settings" };
    case "default_password":
      return { label: "Set your own", path: "/settings" };
    default:
      return { label: "Open", path: nodePath(nodeId) };
  }
}

function nodePath(nodeId: string | undefined): string {
  return nodeId === undefined ? "/alerts" : `/nodes/${encodeURIComponent(nodeId)}`;
}
