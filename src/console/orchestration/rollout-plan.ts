// The plan of a rollout: pure, so a dry run shows its commands exactly (spec 4.7; decisions D7, T14, T15).
import { GroveError, isGroveError } from "#base/errors.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { ActionRequest } from "#wire/webapi/action-request.ts";
import type { RolloutRecord, RolloutRequest } from "#wire/webapi/rollout.ts";
import { type ActionPlan, GIT_AFTER, GIT_BEFORE, planFor, wordsOf } from "./action-arguments.ts";
import { enrolledNode } from "./action-nodes.ts";
import type { RunStep } from "./remote-step.ts";

/** The steps of a rollout that are actions, in this order. */
export type RolloutStep = "pull" | "back" | "build" | "restart";

/** The request of a rollout, forward or back. */
export type RequestedRollout = RolloutRecord["request"];

/** One node's part of a record. */
export type RolloutEntry = RolloutRecord["nodes"][number];

/** One node of a rollout with its plans. */
export interface RolloutNode {
  readonly node: SshNode;
  /** 0 is the canary; nodes of one wave go together. */
  readonly wave: number;
  /** Reads the commit and local changes of the working copy; changes nothing. */
  readonly check: readonly RunStep[];
  /** In order. */
  readonly plans: readonly { readonly step: RolloutStep; readonly plan: ActionPlan }[];
  /** True when its FileServer is restarted: the gate needs a new start time. */
  readonly restartsFileServer: boolean;
  /** On the way back: the target commit. */
  readonly commit?: string;
}

/** Name under which the changes of a working copy are captured. */
export const GIT_CHANGES = "git_changes";

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** Whether a text is a full commit hash. */
export function isCommit(text: string | undefined): text is string {
  return text !== undefined && COMMIT.test(text);
}

/**
 * The canary, then the other nodes in the request's order; `all` skips nodes that lack what a rollout needs.
 * Throws BAD_ARGUMENT for a named node that lacks it, and for no nodes; ActionRefusal for an unknown node.
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

/**
 * Whether a node takes part in the way back: its working copy may have changed, and its commit before is
 * known.
 */
export function goesBack(node: RolloutEntry): node is RolloutEntry & { readonly commit_before: string } {
  return node.changed && isCommit(node.commit_before);
}

/** The way back: what it does, and the entries of nodes that no longer take part, each with the reason. */
export interface BackPlan {
  readonly nodes: readonly RolloutNode[];
  readonly left: readonly RolloutEntry[];
}

/**
 * The nodes that the rollout has changed, in the same order, each to its commit before. One that is not enrolled any
 * more keeps no other from going back. Throws ActionRefusal where none is left.
 */
export function planBack(record: RolloutRecord, enrolled: readonly SshNode[]): BackPlan {
  const changed = record.nodes.filter(goesBack);
  const isEnrolled = ({ node_id: id }: RolloutEntry): boolean => enrolled.some((node) => node.id === id);
  const back = changed.some(isEnrolled) ? changed.filter(isEnrolled) : changed;
  const left = changed.filter((node) => !back.includes(node));
  return {
    nodes: back.map(({ node_id: id, wave, commit_before: commit }) =>
      planNode(record.request, enrolledNode(enrolled, id), { wave, commit }),
    ),
    left: left.map(({ node_id, node_name, wave }) => ({
      node_id,
      node_name,
      wave,
      state: "skipped",
      message: "not enrolled any more, so it stays as it is; grove node add enrols it",
      steps: [],
      changed: false,
    })),
  };
}

/** A node's steps in a new record. */
export function plannedSteps({ check, plans }: RolloutNode): RolloutEntry["steps"] {
  const words = check.flatMap(({ argv }, at) => (at === 0 ? [...argv] : ["&&", ...argv]));
  return [
    { step: "check", argv: words },
    ...plans.map(({ step, plan }) => ({ step, argv: wordsOf(plan.steps) })),
  ];
}

/** The action of a step, for its record. */
export function stepRequest(
  step: RolloutStep,
  requested: RequestedRollout,
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
      return { ...common, action: "pull", branch: requested.branch };
    case "build":
      return { ...common, action: "build", make_target: requested.make_target };
    case "restart":
      break;
  }
  const { restart_mode, target_service } = requested;
  return { ...common, action: "restart", restart_mode, target_service };
}

function planNode(
  requested: RequestedRollout,
  node: SshNode,
  { wave, commit }: { readonly wave: number; readonly commit?: string },
): RolloutNode {
  const planned = (step: RolloutStep): ActionPlan =>
    planFor(stepRequest(step, requested, { nodes: [node.id], comment: "" }), node);
  const source =
    commit === undefined
      ? { step: "pull" as const, plan: planned("pull") }
      : { step: "back" as const, plan: { ...planned("back"), steps: backSteps(commit, node.repository) } };
  const services = withoutConsole(node).services;
  const { target_service: target } = requested;
  return {
    node,
    wave,
    check: checkSteps(node.repository),
    plans: [
      source,
      { step: "build", plan: planned("build") },
      { step: "restart", plan: restartPlan(requested, node) },
    ],
    restartsFileServer: target !== "metaserver" && services.fileserver !== undefined,
    ...(commit === undefined ? {} : { commit }),
  };
}

/** The console cannot watch its own restart, which needs an action of its own (T14). */
function restartPlan(requested: RequestedRollout, node: SshNode): ActionPlan {
  return planFor(stepRequest("restart", requested, { nodes: [node.id], comment: "" }), withoutConsole(node));
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

/**
 * Keeps the branch checked out, for the next pull, and local changes in git's stash, those of a merge that has met a
 * conflict too, which only an addition lets in. What is changed after that, and an untracked file in the way, makes
 * the reset fail instead of being lost.
 */
function backSteps(commit: string, cwd: string): RunStep[] {
  if (!isCommit(commit)) throw new GroveError("BAD_ARGUMENT", "not the whole name of a commit");
  const why = `before going back to ${commit.slice(0, 12)}`;
  return [
    { argv: ["git", "add", "--update"], cwd },
    { argv: ["git", "stash", "push", "--message", why], cwd },
    { argv: ["git", "reset", "--keep", commit], cwd },
    { argv: ["git", "rev-parse", "HEAD"], cwd, capture: GIT_AFTER },
  ];
}

function byId(a: SshNode, b: SshNode): number {
  return a.id < b.id ? -1 : 1;
}
