// Rollouts: a commit comes to nodes step by step, each step watched before the next begins, and there is a way back (spec 4.7; decisions D7, T15).
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

/** What a rollout restarts: `all` is every service of a node but the console, which cannot watch its own restart. */
export const ROLLOUT_SERVICES = ["fileserver", "metaserver", "all"] as const;

/** What is asked of a node after its restart, before the rollout goes on. */
const rolloutGates = z.strictObject({
  /** Time for /health, and for a poll that began after the restart, in seconds. */
  health_seconds: z.int().min(1).max(ROLLOUT_WAIT_MAX_SECONDS).default(ROLLOUT_HEALTH_SECONDS),
  /** How long the node is watched after that, in seconds. */
  observe_seconds: z.int().min(0).max(ROLLOUT_WAIT_MAX_SECONDS).default(ROLLOUT_OBSERVE_SECONDS),
  /** Failed operations a second that it may have above what it had in the minute before. */
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
    /** The node that goes first, alone; default the first of `nodes`, of all the first by id. */
    canary: nodeId.optional(),
    /** Nodes that go together after it. */
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
 * `planned` is a dry run. `failed`: it stopped by itself, `reason` says at what. `interrupted`: the console ended in the middle of it;
 * nothing of it goes on.
 */
export const ROLLOUT_STATES = [
  "planned",
  "running",
  "succeeded",
  "failed",
  "cancelled",
  "interrupted",
] as const;

/** What is done on a node, in order: `pull`, or `back` on the way back. */
export const ROLLOUT_STEPS = ["check", "pull", "back", "build", "restart", "gate"] as const;

/** `unfinished`: the rollout ended while it was this node's turn, and not because of it. `unknown`: nobody knows how its step ended. */
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
  /** 0 is the canary; those of one number go together. */
  wave: z.int(),
  state: z.enum(ROLLOUT_NODE_STATES),
  /** The step that it is in, or ended in. */
  step: z.enum(ROLLOUT_STEPS).optional(),
  /** Why, as a sentence. */
  message: z.string().optional(),
  /** What runs there, word by word; several commands are told apart by "&&". The action is there once it has begun. */
  steps: z.array(
    z.object({
      step: z.enum(ROLLOUT_STEPS),
      argv: z.array(z.string()),
      action_id: z.string().optional(),
    }),
  ),
  /** True from the moment when its working copy may have changed: it is one of those that go back. */
  changed: z.boolean(),
  /** Where it is gone back to. */
  commit_before: commit.optional(),
  commit_after: commit.optional(),
  /** What the node says it runs since the restart; unlike commit_after where its services run from elsewhere. */
  commit_running: z.string().optional(),
  /** Failed operations a second in the minute before, and since the restart; null when the node did not say. */
  errors_per_second_before: z.number().nullable().optional(),
  errors_per_second_after: z.number().nullable().optional(),
  started_at: z.number().optional(),
  finished_at: z.number().optional(),
});

/** One rollout. */
export const rolloutRecord = z.object({
  id: z.string(),
  direction: z.enum(["forward", "back"]),
  /** On the way back: the rollout whose nodes go back. */
  back_of: z.string().optional(),
  /** The newest rollout that went back from this one. */
  back_by: z.string().optional(),
  /** As it was understood; on the way back that of the rollout before, with its nodes. */
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
  /** Counts the changes of this record: whoever has a lower one has missed something. */
  seq: z.int(),
  created_at: z.number(),
  finished_at: z.number().optional(),
  /** True when POST …/back would do something: it is over, and has changed nodes. */
  can_go_back: z.boolean(),
  /** In the order in which they go. */
  nodes: z.array(rolloutNode),
});

/** A rollout as it is sent and kept. */
export type RolloutRecord = z.infer<typeof rolloutRecord>;

/** GET /api/rollouts: the newest first. */
export const rolloutsReply = z.object({ rollouts: z.array(rolloutRecord), total: z.int() });
