// Alerts about actions and rollouts: a failure on a node is open until the same action succeeds there (D11).
import { createHash } from "node:crypto";
import { alertKey } from "#console/alerts/alert-kinds.ts";
import type { TargetRunner } from "#console/orchestration/action-run.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { SERVICES } from "#wire/webapi/action-request.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import type { AlertService } from "./alert-service.ts";

type Alerts = Pick<AlertService, "happened" | "settled">;

/** Raises alerts for an action's failures, and ends those of its successes. */
export function tellOfAction(record: ActionRecord, alerts: Alerts): void {
  if (record.request.dry_run) return;
  const keyOf = (nodeId: string, what: string): string => alertKey("action_failed", `${nodeId}:${what}`);
  const settled: string[] = [];
  for (const { node_id: nodeId, node_name: node, state, reason, message } of record.targets) {
    if (reason === "HOST_KEY_CHANGED") {
      tellOfHostKey({ nodeId, node, message }, alerts);
    } else if (state === "succeeded") {
      settled.push(...coveredBy(record).map((what) => keyOf(nodeId, what)));
    } else if (state !== "cancelled" && state !== "skipped") {
      void alerts.happened({
        key: keyOf(nodeId, sameness(record)),
        type: "action_failed",
        level: "warning",
        nodeId,
        detail: { node, action: record.action, reason: message ?? reason ?? state.replaceAll("_", " ") },
      });
    }
  }
  if (settled.length > 0) void alerts.settled(settled);
}

/** A runner for what has no record, such as logs and a rollout's checks: another host key is told from there too. */
export function tellingOfHostKeys(
  runner: TargetRunner,
  nameOf: (nodeId: string) => string,
  alerts: Pick<Alerts, "happened">,
): TargetRunner {
  return {
    ...runner,
    async run(node, steps, options) {
      const result = await runner.run(node, steps, options);
      if (result.reason === "HOST_KEY_CHANGED")
        tellOfHostKey({ nodeId: node.id, node: nameOf(node.id), message: result.message }, alerts);
      return result;
    },
  };
}

function tellOfHostKey(
  seen: { readonly nodeId: string; readonly node: string; readonly message: string | undefined },
  alerts: Pick<Alerts, "happened">,
): void {
  const { nodeId, node, message } = seen;
  const shown = /shows (SHA256:[^ ,;]+)/.exec(message ?? "")?.[1];
  void alerts.happened({
    key: alertKey("host_key_changed", nodeId),
    type: "host_key_changed",
    level: "critical",
    nodeId,
    detail: { node, ...(shown === undefined ? {} : { fingerprint: shown }) },
  });
}

/** The same for a rollout's own steps; its actions have alerts of their own. */
export function tellOfRollout(record: RolloutRecord, alerts: Alerts): void {
  const settled: string[] = [];
  for (const { node_id: nodeId, node_name: node, state, step, message } of record.nodes) {
    const key = alertKey("action_failed", `${nodeId}:rollout`);
    if (state === "succeeded") settled.push(key);
    if (state !== "failed" || (step !== "gate" && step !== "check")) continue;
    void alerts.happened({
      key,
      type: "action_failed",
      level: "warning",
      nodeId,
      detail: { node, action: "rollout", reason: message ?? "it was not well afterwards" },
    });
  }
  if (settled.length > 0) void alerts.settled(settled);
}

/** Identity of an action for its alerts: its kind and its object. */
function sameness({ action, request }: Pick<ActionRecord, "action" | "request">): string {
  switch (action) {
    case "restart":
      return `restart:${String(request["target_service"])}`;
    case "logs":
      return `logs:${String(request["service"])}`;
    case "build":
      return `build:${String(request["make_target"])}`;
    case "custom":
      return `custom:${createHash("sha256").update(String(request["command"])).digest("hex").slice(0, 16)}`;
    default:
      return action;
  }
}

/** The identities that a success covers: its own, and each service of an action on all services. */
function coveredBy(record: ActionRecord): string[] {
  if (record.action !== "restart" || record.request["target_service"] !== "all") return [sameness(record)];
  return ["all", ...SERVICES].map((service) => `restart:${service}`);
}
