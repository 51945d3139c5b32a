// One action from its request to its end: its record, its nodes and its final state (spec 2.9, D7).
import type { Clock } from "#base/clock.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import type { ActionRequest } from "#wire/webapi/action-request.ts";
import { type ActionPlan, GIT_AFTER, GIT_BEFORE, wordsOf } from "./action-arguments.ts";
import { type BatchOrder, orderOf } from "./action-batch.ts";
import type { ActionOutput } from "./action-output.ts";
import type { TargetResult } from "./target-run.ts";

/**
 * A node's lock expires this long after the action's time limit, in any state of the action (decision D7).
 */
export const NODE_LOCK_GRACE_MS = 60_000;
/** Longest end of an action on a node after its time: two tries to reach it and to end its processes. */
const TARGET_END_MS = 90_000;

/** One node's part of a record. */
export type RecordTarget = ActionRecord["targets"][number];

/** The operator of an action: the first characters of the session's hash, and the address. */
export interface ActionOperator {
  readonly session: string;
  readonly ip: string;
  /** Id of the HTTP request. */
  readonly requestId?: string | undefined;
}

/** A node with its plan. */
export interface JobNode {
  readonly node: SshNode;
  readonly plan: ActionPlan;
}

/** An accepted action. */
export interface Job {
  record: ActionRecord;
  readonly request: ActionRequest;
  readonly operator: ActionOperator;
  readonly nodes: readonly JobNode[];
  readonly order: BatchOrder;
  /** True for a step of a rollout, which has locked the nodes and opened their maintenance window. */
  readonly isStep: boolean;
  readonly abort: AbortController;
  readonly done: PromiseWithResolvers<ActionRecord>;
  /** Undefined before the action runs. */
  output: ActionOutput | undefined;
  release: () => void;
  /** Handed over while this console stops: later results are ignored (T14). */
  isLetGo: boolean;
  saving: Promise<void> | undefined;
  isDirty: boolean;
}

/** The record of a new action. */
export function newRecord(
  id: string,
  clock: Pick<Clock, "wallMs">,
  requested: {
    readonly request: ActionRequest;
    readonly operator: ActionOperator;
    readonly nodes: readonly JobNode[];
    readonly nameOf: (nodeId: string) => string;
  },
): ActionRecord {
  const { session, ip } = requested.operator;
  return {
    id,
    action: requested.request.action,
    request: requested.request,
    operator: { session, ip },
    state: "queued",
    created_at: unixSeconds(clock),
    exit_code: null,
    stdout: "",
    stderr: "",
    targets: requested.nodes.map(({ node, plan }) => ({
      node_id: node.id,
      node_name: requested.nameOf(node.id),
      argv: wordsOf(plan.steps),
      exit_code: null,
      state: "pending",
      stdout: "",
      stderr: "",
      truncated: false,
    })),
  };
}

/**
 * Name on a node of the part that restarts the console or its host; the part before it has the action's name
 * (T14).
 */
export function ownPart(actionId: string): string {
  return `${actionId}-own`;
}

/** The wall clock in unix seconds, as records have it. */
export function unixSeconds(clock: Pick<Clock, "wallMs">): number {
  return Math.trunc(clock.wallMs()) / 1_000;
}

/**
 * Upper bound of an action's duration with its batches one after the other, in milliseconds. Nodes on which the
 * console itself restarts come last, one by one, and a node whose time has run out is still to be ended.
 */
export function wholeLimitMs(nodes: readonly JobNode[], order: BatchOrder): number {
  const longest = Math.max(0, ...nodes.map(({ plan }) => plan.limitSeconds));
  const own = nodes.filter(({ plan }) => plan.consoleStep !== undefined).length;
  const turns = Math.ceil((nodes.length - own) / Math.max(1, order.maxParallel)) + own;
  return turns * ((longest + order.healthGateSeconds) * 1_000 + TARGET_END_MS) + NODE_LOCK_GRACE_MS;
}

/** A job with known nodes. */
export function newJob(
  record: ActionRecord,
  requested: {
    readonly request: ActionRequest;
    readonly operator: ActionOperator;
    readonly nodes: readonly JobNode[];
    readonly isStep?: boolean;
  },
): Job {
  return {
    record,
    ...requested,
    isStep: requested.isStep ?? false,
    order: orderOf(requested.request),
    abort: new AbortController(),
    done: Promise.withResolvers(),
    output: undefined,
    release: () => undefined,
    isLetGo: false,
    saving: undefined,
    isDirty: false,
  };
}

/** Changes one node's part of the record. */
export function changeTarget(job: Job, nodeId: string, change: Partial<RecordTarget>): void {
  const targets = job.record.targets.map((target) =>
    target.node_id === nodeId ? { ...target, ...change } : target,
  );
  job.record = { ...job.record, targets };
}

/** The fields of a record that a result sets. */
export function resultFields(result: TargetResult): Partial<RecordTarget> {
  const { captured } = result;
  const text = (name: keyof RecordTarget, value: string | undefined): Partial<RecordTarget> =>
    value === undefined || value === "" ? {} : { [name]: value };
  return {
    state: result.state,
    exit_code: result.exitCode,
    ...text("signal", result.signal),
    ...text("reason", result.reason),
    ...text("message", result.message),
    ...text("git_before", captured[GIT_BEFORE]),
    ...text("git_after", captured[GIT_AFTER]),
    ...text("boot_id_before", result.bootIdBefore),
    ...text("boot_id_after", result.bootIdAfter),
  };
}

/** The state of an action whose nodes have all ended. */
export function finalState(
  targets: readonly Pick<RecordTarget, "state">[],
  isCancelled: boolean,
): ActionRecord["state"] {
  const all = (state: RecordTarget["state"]): boolean => targets.every((target) => target.state === state);
  if (all("succeeded")) return "succeeded";
  if (isCancelled) return "cancelled";
  if (targets.some(({ state }) => state === "succeeded")) return "partly_failed";
  if (all("timed_out")) return "timed_out";
  return "failed";
}

/**
 * The exit code of the worst node: the highest, and null when none has one. A node that failed without one, as where it
 * was not reached, is worse than 0 (spec 2.9, failure E-05).
 */
export function worstExitCode(targets: readonly Pick<RecordTarget, "exit_code" | "state">[]): number | null {
  const worst = Math.max(...targets.map(({ exit_code: code }) => code ?? Number.NEGATIVE_INFINITY));
  const isUnsaid = targets.some(({ exit_code: code, state }) => code === null && state !== "succeeded");
  return Number.isFinite(worst) && !(worst === 0 && isUnsaid) ? worst : null;
}

/** The concatenated outputs of all nodes, each under its name where there are several. */
export function joined(targets: readonly RecordTarget[], stream: "stdout" | "stderr"): string {
  const said = targets.filter((target) => target[stream] !== "");
  if (targets.length === 1) return said[0]?.[stream] ?? "";
  return said.map((target) => `== ${target.node_id} ==\n${target[stream]}`).join("\n");
}
