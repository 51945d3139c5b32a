// The state of each node after a rollout that ended half way, and the ways forward and back.
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { STEP_LABELS } from "./rollout.ts";

type RolloutNode = RolloutRecord["nodes"][number];

const list = new Intl.ListFormat("en-GB", { type: "conjunction" });

/**
 * "When it ended: it was done on n1, it stood at the step “build” on n2, and nothing had changed on n3. …".
 * Empty while it runs, after a success, and once another rollout has reverted it.
 */
export function standText({
  state,
  direction,
  nodes,
  back_by: backBy,
  can_go_back: canGoBack,
}: RolloutRecord): string {
  if (state === "planned" || state === "running" || state === "succeeded" || backBy !== undefined) return "";
  const facts = [...Map.groupBy(nodes, standOf)].map(([stand, there]) => `${stand} on ${namesOf(there)}`);
  const isForward = direction === "forward";
  const again = isForward ? "begin the same rollout again" : "go back from the rollout before again";
  const back =
    canGoBack && isForward
      ? `; to undo it, go back on ${namesOf(nodes.filter(({ changed }) => changed))}`
      : "";
  return `When it ended, ${list.format(facts)}. Nothing of it goes on by itself. To go on, ${again}${back}.`;
}

function standOf({ state, changed, step }: RolloutNode): string {
  if (state === "succeeded") return "it was done";
  if (!changed) return "nothing had changed";
  return step === undefined ? "it had begun" : `it stood at the step “${STEP_LABELS[step].toLowerCase()}”`;
}

function namesOf(nodes: readonly RolloutNode[]): string {
  return list.format(nodes.map(({ node_name: name }) => name));
}
