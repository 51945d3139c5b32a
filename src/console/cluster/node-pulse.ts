// Nodes as rollouts see them: last good poll on the steady clock, failed operations (spec 3.2, decision D7).
import type { History } from "#console/history/history.ts";
import type { TargetRunner } from "#console/orchestration/action-run.ts";
import type { NodeLook, NodePulse } from "#console/orchestration/rollout-gate.ts";
import type { ClusterState, NodeReading } from "./cluster-state.ts";

/** What the pulse needs. */
export interface NodePulseDeps {
  readonly cluster: Pick<ClusterState, "node" | "onPoll">;
  readonly history: Pick<History, "errorsPerSecond">;
  readonly runner: Pick<TargetRunner, "isHealthy">;
}

/** Listens to polls until `end` is called. */
export function openPulse({
  cluster,
  history,
  runner,
}: NodePulseDeps): NodePulse & { readonly end: () => void } {
  const answers = new Map<string, { readonly answeredMs: number; readonly reading: NodeReading }>();
  const end = cluster.onPoll(({ node, reading, steadyMs }) => {
    if (reading !== undefined) answers.set(node.id, { answeredMs: steadyMs, reading });
  });
  return {
    look(nodeId): NodeLook | undefined {
      const answer = answers.get(nodeId);
      if (answer === undefined || cluster.node(nodeId) === undefined) {
        answers.delete(nodeId);
        return undefined;
      }
      const { answeredMs, reading } = answer;
      return {
        answeredMs,
        startedUnix: reading.lastRestartUnix,
        errors: reading.errorsTotal === null ? null : Number(reading.errorsTotal),
        errorsPerSecond: history.errorsPerSecond(nodeId),
        commit: reading.gitCommit,
      };
    },
    isHealthy: (nodeId, signal) => runner.isHealthy(nodeId, signal),
    end,
  };
}
