// A rollout as a strip of nodes in order, canary first, each with its step and gate.
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { nodeSentence, rolloutNodeState, STEP_LABELS } from "../words/rollout.ts";
import { StateMark } from "./state-mark.tsx";

type RolloutNode = RolloutRecord["nodes"][number];

/** The strip; a plan shows each node's commands. */
export function RolloutStrip({ rollout }: { readonly rollout: RolloutRecord }): ReactNode {
  const isPlan = rollout.state === "planned";
  const common = isPlan ? sameOnAll(rollout.nodes) : undefined;
  const waves = [...Map.groupBy(rollout.nodes, ({ wave }) => wave)].sort(([a], [b]) => a - b);
  return (
    <>
      {common === undefined ? null : (
        <>
          <p className="quiet tight">On each of the {rollout.nodes.length} nodes:</p>
          <Steps node={common} isPlan />
        </>
      )}
      <ol className="strip">
        {waves.map(([wave, nodes]) => (
          <li key={wave}>
            <h3>{wave === 0 ? "First, alone" : `Step ${wave}`}</h3>
            <ul>
              {nodes.map((node) => (
                <NodeBox key={node.node_id} node={node} rollout={rollout} hasSteps={common === undefined} />
              ))}
            </ul>
          </li>
        ))}
      </ol>
    </>
  );
}

/** A node whose steps equal all others'; undefined if they differ. */
function sameOnAll(nodes: readonly RolloutNode[]): RolloutNode | undefined {
  const kinds = new Set(nodes.map(({ steps }) => JSON.stringify(steps)));
  return nodes.length > 1 && kinds.size === 1 ? nodes[0] : undefined;
}

function NodeBox({
  node,
  rollout,
  hasSteps,
}: {
  readonly node: RolloutNode;
  readonly rollout: RolloutRecord;
  readonly hasSteps: boolean;
}): ReactNode {
  const text = nodeSentence(node, rollout);
  const isPlan = rollout.state === "planned";
  return (
    <li className="strip-node" data-state={rolloutNodeState(node.state)}>
      <div className="title-line">
        <Link className="row-link" href={`/nodes/${encodeURIComponent(node.node_id)}`}>
          {node.node_name}
        </Link>
        {isPlan ? null : (
          <StateMark state={rolloutNodeState(node.state)} label={node.state.replaceAll("_", " ")} />
        )}
      </div>
      {hasSteps && node.steps.length > 0 ? <Steps node={node} isPlan={isPlan} /> : null}
      {text === "" || (isPlan && node.state !== "skipped") ? null : <p className="tight">{text}</p>}
      <Errors node={node} />
    </li>
  );
}

const MARKS = { done: "✓", now: "▸", not: "·", failed: "■" } as const;

const GATE: RolloutNode["steps"][number] = { step: "gate", argv: [] };

function Steps({ node, isPlan }: { readonly node: RolloutNode; readonly isPlan: boolean }): ReactNode {
  // The gate runs no command, but is a step of its own.
  const hasGate = isPlan || node.steps.some(({ step }) => step === "gate");
  const steps = hasGate ? node.steps : [...node.steps, GATE];
  const at = steps.findIndex(({ step }) => step === node.step);
  const markOf = (index: number): keyof typeof MARKS => {
    if (node.state === "succeeded") return "done";
    if (at < 0 || index > at) return "not";
    if (index < at) return "done";
    return node.state === "running" ? "now" : node.state === "pending" ? "not" : "failed";
  };
  return (
    <ol className="steps">
      {steps.map(({ step, argv, action_id: actionId }, index) => (
        <li key={step} data-mark={markOf(index)} aria-current={markOf(index) === "now" ? "step" : undefined}>
          <span aria-hidden="true">{isPlan ? "" : `${MARKS[markOf(index)]} `}</span>
          {actionId === undefined ? (
            STEP_LABELS[step]
          ) : (
            <Link href={`/actions/${encodeURIComponent(actionId)}`}>{STEP_LABELS[step]}</Link>
          )}
          {isPlan && argv.length > 0 ? (
            <pre className="command">{argv.join(" ").replaceAll(" && ", "\n")}</pre>
          ) : null}
        </li>
      ))}
    </ol>
  );
}

function Errors({ node }: { readonly node: RolloutNode }): ReactNode {
  const { errors_per_second_before: before, errors_per_second_after: after } = node;
  if (typeof before !== "number" || typeof after !== "number") return null;
  return (
    <p className="quiet small tight">
      failed operations a second: {before.toFixed(2)} before, {after.toFixed(2)} since
    </p>
  );
}
