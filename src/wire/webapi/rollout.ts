// Rollouts: a commit reaches nodes in steps with gates, and can be taken back (spec 4.7; decisions D7, T15).
import { z } from "zod";
import {
  ACTION_NODES_MAX,
  ROLLOUT_ERRORS_PER_SECOND_ABOVE,
  ROLLOUT_HEALTH_SECONDS,
  ROLLOUT_OBSERVE_SECONDS,
  ROLLOUT_WAIT_MAX_SECONDS,
} from "#base/limits.ts";
import { idempotencyKey, nodeId, nodeIds, RESTART_MODES } from "./action-request.ts";
import { branchName } from "./branch-name.ts";
import { makeTarget } from "./make-target.ts";

/** Services that a rollout restarts: `all` excludes the console, which cannot watch its own restart. */
export const ROLLOUT_SERVICES = ["fileserver", "metaserver", "all"] as const;

/** The gates that a node must pass after its restart. */
const rolloutGates = z.strictObject({
  /** Time limit for /health, and for a poll that began after the restart, in seconds. */
  health_seconds: z.int().min(1).max(ROLLOUT_WAIT_MAX_SECONDS).default(ROLLOUT_HEALTH_SECONDS),
  /** Time of observation after that, in seconds. */
  observe_seconds: z.int().min(0).max(ROLLOUT_WAIT_MAX_SECONDS).default(ROLLOUT_OBSERVE_SECONDS),
  /** Allowed increase in failed operations a second over the minute before. */
  errors_per_second_above: z.number().min(0).max(1_000).default(ROLLOUT_ERRORS_PER_SECOND_ABOVE),
});

/** POST /api/rollouts. */
export const rolloutRequest = z
  .strictObject({
    nodes: nodeIds,
    branch: branchName,
    make_target: makeTarget.default("build"),
    restart_mode: z.enum(RESTART_MODES).default("systemctl"),
    target_service: z.enum(ROLLOUT_SERVICES),
    /** The node that goes first, alone; default the first of `nodes`, or the first by id for all. */
    canary: nodeId.optional(),
    /** Nodes of each later step. */
    step_size: z.int().min(1).max(ACTION_NODES_MAX).default(1),
    gates: rolloutGates.prefault({}),
    dry_run: z.boolean().default(false),
    comment: z.string().max(1024).optional(),
    idempotency_key: idempotencyKey.optional(),
  })
  .refine(({ nodes, canary }) => canary === undefined || nodes === "all" || nodes.includes(canary), {
    path: ["canary"],
    message: "not one of the nodes",
  });

/** A rollout in full, defaults filled in. */
export type RolloutRequest = z.infer<typeof rolloutRequest>;

/** POST /api/rollouts/{id}/back; the body may be missing. */
export const rolloutBackRequest = z
  .strictObject({ dry_run: z.boolean().default(false), comment: z.string().max(1024).optional() })
  .nullish();

/**
 * `planned` is a dry run. `failed`: it stopped by itself for `reason`. `interrupted`: the console ended
 * during the rollout, which does not continue.
 */
export const ROLLOUT_STATES = [
  "planned",
  "running",
  "succeeded",
  "failed",
  "cancelled",
  "interrupted",
] as const;

/** Steps on a node, in order: `pull`, or `back` on the way back. */
export const ROLLOUT_STEPS = ["check", "pull", "back", "build", "restart", "gate"] as const;

/**
 * `unfinished`: the rollout ended during this node's turn for another reason. `unknown`: its result is lost.
 */
const ROLLOUT_NODE_STATES = [
  "pending",
  "running",
  "succeeded",
  "failed",
  "unfinished",
  "cancelled",
  "skipped",
  "unknown",
] as const;

const commit = z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/);

/** One node of a rollout. Times are unix seconds. */
const rolloutNode = z.object({
  node_id: z.string(),
  node_name: z.string(),
  /** 0 is the canary; nodes of the same wave go together. */
  wave: z.int(),
  state: z.enum(ROLLOUT_NODE_STATES),
  /** The current or last step. */
  step: z.enum(ROLLOUT_STEPS).optional(),
  /** The reason as a sentence. */
  message: z.string().optional(),
  /** The executed words; "&&" separates several commands. The action is present once it has begun. */
  steps: z.array(
    z.object({
      step: z.enum(ROLLOUT_STEPS),
      argv: z.array(z.string()),
      action_id: z.string().optional(),
    }),
  ),
  /** True from the moment when its working copy may have changed: it then takes part in a way back. */
  changed: z.boolean(),
  /** The commit to go back to. */
  commit_before: commit.optional(),
  commit_after: commit.optional(),
  /** The commit that the node reports; unlike commit_after where its services run from another folder. */
  commit_running: z.string().optional(),
  /** Failed operations a second in the minute before, and since the restart; null without a report. */
  errors_per_second_before: z.number().nullable().optional(),
  errors_per_second_after: z.number().nullable().optional(),
  started_at: z.number().optional(),
  finished_at: z.number().optional(),
});

/** One rollout. */
export const rolloutRecord = z.object({
  id: z.string(),
  direction: z.enum(["forward", "back"]),
  /** On the way back: the rollout that it takes back. */
  back_of: z.string().optional(),
  /** The newest rollout that takes this one back. */
  back_by: z.string().optional(),
  /** The request as parsed; on the way back the earlier rollout's, with its nodes. */
  request: z.looseObject({
    nodes: z.union([z.literal("all"), z.array(z.string())]),
    branch: z.string(),
    make_target: z.string(),
    restart_mode: z.enum(RESTART_MODES),
    target_service: z.enum(ROLLOUT_SERVICES),
    step_size: z.int(),
    gates: rolloutGates,
    dry_run: z.boolean(),
    comment: z.string().optional(),
  }),
  operator: z.object({ session: z.string(), ip: z.string() }),
  state: z.enum(ROLLOUT_STATES),
  /** Why it did not succeed, as a sentence. */
  reason: z.string().optional(),
  /** Counts the changes of this record: a client with a lower number has missed one. */
  seq: z.int(),
  created_at: z.number(),
  finished_at: z.number().optional(),
  /** True when POST …/back would have an effect: the rollout is over, and has changed nodes. */
  can_go_back: z.boolean(),
  /** In order of execution. */
  nodes: z.array(rolloutNode),
});

/** A rollout as sent and stored. */
export type RolloutRecord = z.infer<typeof rolloutRecord>;

/** GET /api/rollouts: newest first. */
export const rolloutsReply = z.object({ rollouts: z.array(rolloutRecord), total: z.int() });
