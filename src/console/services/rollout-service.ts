// Joins rollouts with the console's polls, the actions, the audit log, the alerts and live state.

import type { ClusterWatch } from "#console/cluster/cluster-watch.ts";
import { openPulse } from "#console/cluster/node-pulse.ts";
import type { History } from "#console/history/history.ts";
import type { Hub } from "#console/live/hub.ts";
import type { ActionEngine } from "#console/orchestration/action-engine.ts";
import type { ActionOperator } from "#console/orchestration/action-job.ts";
import type { TargetRunner } from "#console/orchestration/action-run.ts";
import { RolloutHistory } from "#console/orchestration/rollout-history.ts";
import { Rollouts, type RolloutsDeps } from "#console/orchestration/rollouts.ts";
import type { AuditLog } from "#security/audit/audit-log.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { tellOfRollout } from "./action-alerts.ts";
import type { AlertService } from "./alert-service.ts";
import type { ConsoleOptions } from "./console-options.ts";
import { RolloutTopics } from "./rollout-topics.ts";

/** Dependencies of rollouts. */
export interface RolloutServiceDeps {
  readonly options: Pick<ConsoleOptions, "clock" | "log" | "random" | "dataFolder">;
  readonly audit: AuditLog;
  readonly alerts: Pick<AlertService, "happened" | "settled" | "wasReset">;
  readonly watch: Pick<ClusterWatch, "clusterState">;
  readonly history: Pick<History, "errorsPerSecond">;
  readonly hub: Pick<Hub, "publish" | "addSource">;
}

/** Dependencies that actions and rollouts share. */
export interface Shared
  extends Pick<RolloutsDeps, "locks" | "nodes" | "nameOf" | "secrets" | "openMaintenance"> {
  readonly engine: Pick<ActionEngine, "takeStep">;
  readonly runner: TargetRunner;
}

/** Opens rollouts; `close` of the result interrupts those that run. */
export async function openRollouts(
  { options, audit, alerts, watch, history: figures, hub }: RolloutServiceDeps,
  { engine, runner, ...shared }: Shared,
): Promise<{ readonly rollouts: Rollouts; readonly close: () => Promise<void> }> {
  const { clock, log, random, dataFolder } = options;
  const { history, setAside } = await RolloutHistory.open({ folder: dataFolder, clock, log });
  for (const as of setAside) alerts.wasReset("rollouts", as);
  const pulse = openPulse({ cluster: watch.clusterState, history: figures, runner });
  const rollouts = new Rollouts({
    ...shared,
    clock,
    random,
    log,
    history,
    runner,
    pulse,
    takeStep: (request, nodes, operator, signal) => engine.takeStep(request, nodes, operator, signal),
    audit: (act, rollout) => auditRollout(audit, act, rollout),
    onState: (record) => topics.state(record),
    onEnd: (record) => tellOfRollout(record, alerts),
  });
  const topics = new RolloutTopics({ hub, find: (id) => rollouts.find(id) });
  hub.addSource(topics);
  return {
    rollouts,
    async close() {
      await rollouts.close();
      pulse.end();
    },
  };
}

async function auditRollout(
  audit: AuditLog,
  act: "rollout.start" | "rollout.cancel" | "rollout.end",
  { operator, record }: { readonly operator: ActionOperator; readonly record: RolloutRecord },
): Promise<void> {
  const { id, direction, back_of: backOf, request, nodes, state, reason } = record;
  await audit.write({
    act,
    actor: operator.session,
    subject: id,
    request: operator.requestId,
    detail: {
      direction,
      back_of: backOf,
      branch: request.branch,
      nodes: nodes.map((node) => node.node_id).join(","),
      ip: operator.ip,
      ...(act === "rollout.end" ? { state, reason } : {}),
    },
  });
}
