// What a rollout runs on its nodes and in which order: pure, so that a dry run shows exactly it (spec 4.7; decisions D7, T14, T15).
import { GroveError, isGroveError } from "#base/errors.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { ActionRequest } from "#wire/webapi/action-request.ts";
import type { RolloutRecord, RolloutRequest } from "#wire/webapi/rollout.ts";
import { type ActionPlan, GIT_AFTER, GIT_BEFORE, planFor, wordsOf } from "./action-arguments.ts";
import { enrolledNode } from "./action-nodes.ts";
import type { RunStep } from "./remote-step.ts";

/** What a rollout does on a node by actions, in this order. */
export type RolloutStep = "pull" | "back" | "build" | "restart";

/** What a rollout asks for, whichever way it goes. */
export type RequestedRollout = RolloutRecord["request"];

/** What the record says of one node. */
export type RolloutEntry = RolloutRecord["nodes"][number];

/** One node of a rollout with all that is run there. */
export interface RolloutNode {
  readonly node: SshNode;
  /** 0 is the canary; those of one number go together. */
  readonly wave: number;
  /** Reads where the working copy is, and whether it has changes of its own; changes nothing. */
  readonly check: readonly RunStep[];
  /** In order. */
  readonly plans: readonly { readonly step: RolloutStep; readonly plan: ActionPlan }[];
  /** True when its FileServer is restarted: then a new start of it must be seen. */
  readonly restartsFileServer: boolean;
  /** On the way back: the commit that it goes to. */
  readonly commit?: string;
}

/** Name under which the changes of a working copy are captured. */
export const GIT_CHANGES = "git_changes";

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** Whether a text is the whole name of a commit. */
export function isCommit(text: string | undefined): text is string {
  return text !== undefined && COMMIT.test(text);
}

/**
 * The canary, then the others in the order in which they were named. Throws BAD_ARGUMENT for a node that lacks what it needs, and when
 * none of all nodes is meant; `all` leaves out who lacks it. Throws ActionRefusal for a node that is not enrolled.
 */
export function planForward(request: RolloutRequest, enrolled: readonly SshNode[]): RolloutNode[] {
  const { nodes: wanted, canary, step_size: size } = request;
  const chosen = wanted === "all" ? enrolled.toSorted(byId) : wanted.map((id) => enrolledNode(enrolled, id));
  const able = chosen.filter((node) => {
    try {
      restartPlan(request, node);
      return true;
    } catch (error) {
      if (wanted !== "all" || !isGroveError(error, "BAD_ARGUMENT")) throw error;
      return false;
    }
  });
  const first = canary === undefined ? able[0] : able.find(({ id }) => id === canary);
  if (first === undefined) {
    const who = canary === undefined ? "no enrolled node" : `not ${canary}`;
    throw new GroveError("BAD_ARGUMENT", `${who} is meant by this`);
  }
  const inOrder = [first, ...able.filter((node) => node !== first)];
  return inOrder.map((node, at) =>
    planNode(request, node, { wave: at === 0 ? 0 : 1 + Math.floor((at - 1) / size) }),
  );
}

/** Whether a node is one of those that go back: its working copy may have changed, and the commit before is known. */
export function goesBack(node: RolloutEntry): node is RolloutEntry & { readonly commit_before: string } {
  return node.changed && isCommit(node.commit_before);
}

/** The same nodes in the same order, those that the rollout has changed, each to the commit before. */
export function planBack(record: RolloutRecord, enrolled: readonly SshNode[]): RolloutNode[] {
  return record.nodes.flatMap((node) => {
    if (!goesBack(node)) return [];
    const way = { wave: node.wave, commit: node.commit_before };
    return [planNode(record.request, enrolledNode(enrolled, node.node_id), way)];
  });
}

/** What is shown of a node before anything has run. */
export function plannedSteps({ check, plans }: RolloutNode): RolloutEntry["steps"] {
  const words = check.flatMap(({ argv }, at) => (at === 0 ? [...argv] : ["&&", ...argv]));
  return [
    { step: "check", argv: words },
    ...plans.map(({ step, plan }) => ({ step, argv: wordsOf(plan.steps) })),
  ];
}

/** The action of a step: what its record says, and who reads it. */
export function stepRequest(
  step: RolloutStep,
  wish: RequestedRollout,
  { nodes, comment }: { readonly nodes: string[]; readonly comment: string },
): ActionRequest {
  const common = {
    nodes,
    dry_run: false,
    comment,
    strategy: { mode: "parallel" as const, max_parallel: nodes.length, stop_on_failure: false },
  };
  switch (step) {
    case "pull":
    case "back":
      return { ...common, action: "pull", branch: wish.branch };
    case "build":
      return { ...common, action: "build", make_target: wish.make_target };
    case "restart":
      break;
  }
  const { restart_mode, target_service } = wish;
  return { ...common, action: "restart", restart_mode, target_service };
}

function planNode(
  wish: RequestedRollout,
  node: SshNode,
  { wave, commit }: { readonly wave: number; readonly commit?: string },
): RolloutNode {
  const planned = (step: RolloutStep): ActionPlan =>
    planFor(stepRequest(step, wish, { nodes: [node.id], comment: "" }), node);
  const source =
    commit === undefined
      ? { step: "pull" as const, plan: planned("pull") }
      : { step: "back" as const, plan: { ...planned("back"), steps: backSteps(commit, node.repository) } };
  const services = withoutConsole(node).services;
  const { target_service: target } = wish;
  return {
    node,
    wave,
    check: checkSteps(node.repository),
    plans: [
      source,
      { step: "build", plan: planned("build") },
      { step: "restart", plan: restartPlan(wish, node) },
    ],
    restartsFileServer: target !== "metaserver" && services.fileserver !== undefined,
    ...(commit === undefined ? {} : { commit }),
  };
}

/** The console cannot watch its own restart: that is an action of its own (T14). */
function restartPlan(wish: RequestedRollout, node: SshNode): ActionPlan {
  return planFor(stepRequest("restart", wish, { nodes: [node.id], comment: "" }), withoutConsole(node));
}

function withoutConsole(node: SshNode): SshNode {
  const { admin: _console, ...services } = node.services;
  return { ...node, services };
}

function checkSteps(cwd: string): RunStep[] {
  return [
    { argv: ["git", "rev-parse", "HEAD"], cwd, capture: GIT_BEFORE },
    { argv: ["git", "status", "--porcelain", "--untracked-files=no"], cwd, capture: GIT_CHANGES },
  ];
}

/** The branch stays checked out, so that the next pull finds it where it was. */
function backSteps(commit: string, cwd: string): RunStep[] {
  if (!isCommit(commit)) throw new GroveError("BAD_ARGUMENT", "not the whole name of a commit");
  return [
    { argv: ["git", "reset", "--hard", commit], cwd },
    { argv: ["git", "rev-parse", "HEAD"], cwd, capture: GIT_AFTER },
  ];
}

function byId(a: SshNode, b: SshNode): number {
  return a.id < b.id ? -1 : 1;
}
