// Rollouts in words: progress, steps, gates and outcomes.
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import type { ShownState } from "./node-state.ts";
import { countText, plainNumber } from "./number.ts";

type RolloutNode = RolloutRecord["nodes"][number];
type Step = NonNullable<RolloutNode["step"]>;

/** "Rollout of main" or "Back from the rollout of main". */
export function rolloutTitle({ direction, request }: RolloutRecord): string {
  return direction === "forward"
    ? `Rollout of ${request.branch}`
    : `Back from the rollout of ${request.branch}`;
}

/** Shape and colour of a rollout's state. */
export function rolloutState(state: RolloutRecord["state"]): ShownState {
  switch (state) {
    case "succeeded":
      return "online";
    case "failed":
      return "critical";
    case "interrupted":
      return "degraded";
    case "cancelled":
      return "offline";
    case "planned":
    case "running":
      return "info";
  }
}

/** Shape and colour of a node's state. */
export function rolloutNodeState(state: RolloutNode["state"]): ShownState {
  switch (state) {
    case "succeeded":
      return "online";
    case "failed":
      return "critical";
    case "unknown":
    case "unfinished":
      return "degraded";
    case "cancelled":
    case "skipped":
      return "offline";
    case "pending":
    case "running":
      return "info";
  }
}

/** Labels of the steps. */
export const STEP_LABELS: Readonly<Record<Step, string>> = {
  check: "Check",
  pull: "Pull",
  back: "Go back",
  build: "Build",
  restart: "Restart",
  gate: "Gate",
};

/** A node's current step, gate or outcome. */
export function nodeSentence(node: RolloutNode, rollout: Pick<RolloutRecord, "request">): string {
  if (node.message !== undefined) return node.message;
  if (node.state === "running") return runningText(node.step, rollout.request.gates);
  const { commit_before: before, commit_after: after } = node;
  if (node.state === "pending") return node.wave === 0 ? "goes first, alone" : `waits for step ${node.wave}`;
  if (before === undefined || after === undefined) return "";
  return before === after
    ? `was at ${after.slice(0, 9)} already`
    : `${before.slice(0, 9)} → ${after.slice(0, 9)}`;
}

function runningText(step: Step | undefined, gates: RolloutRecord["request"]["gates"]): string {
  switch (step) {
    case "check":
      return "is looked at before anything is done";
    case "pull":
      return "pulls the branch";
    case "back":
      return "goes back to the commit that it had";
    case "build":
      return "builds";
    case "restart":
      return "restarts";
    case "gate":
      return `waits at its gate: it must answer within ${gates.health_seconds} s, then stay well for ${gates.observe_seconds} s, with at most ${plainNumber(gates.errors_per_second_above)} failed operations a second more than before`;
    case undefined:
      return "begins";
  }
}

/** Progress: "2 of 3 nodes done; now node-3 (build)". */
export function progressText({ nodes, state, reason }: RolloutRecord): string {
  const done = nodes.filter((node) => node.state === "succeeded").length;
  const first = `${done} of ${countText(nodes.length, "node")} done`;
  if (reason !== undefined) return `${first}. It stopped: ${reason}`;
  if (state !== "running") return first;
  const busy = nodes.filter((node) => node.state === "running");
  const names = busy.map(({ node_name: name, step }) =>
    step === undefined ? name : `${name} (${STEP_LABELS[step].toLowerCase()})`,
  );
  return busy.length === 0 ? first : `${first}; now ${names.join(", ")}`;
}
