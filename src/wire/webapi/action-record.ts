// The record of an action: its author, its targets and their results (spec 2.9, decision D7).
import { z } from "zod";
import { ACTION_KINDS, actionRequest } from "./action-request.ts";

/** States of an action (decision D7). */
export const ACTION_STATES = [
  "queued",
  "locking",
  "running",
  "succeeded",
  "failed",
  "partly_failed",
  "timed_out",
  "cancelled",
  "rejected",
  "handed_over",
  "orphaned",
] as const;

/** States of one target (decision D7). */
const TARGET_STATES = [
  "pending",
  "running",
  "succeeded",
  "failed",
  "unreachable",
  "timed_out",
  "cancelled",
  "skipped",
  "unknown",
] as const;

/** A request in full, as parsed on arrival. */
const storedRequest = z.looseObject({ action: z.enum(ACTION_KINDS), dry_run: z.boolean() });

/** The result of an action on one node. Times are unix seconds. */
const actionTarget = z.object({
  node_id: z.string(),
  node_name: z.string(),
  /** The executed words; "&&" separates several commands. */
  argv: z.array(z.string()),
  exit_code: z.int().nullable(),
  signal: z.string().optional(),
  state: z.enum(TARGET_STATES),
  /** A reason beyond the state, such as HOST_KEY_CHANGED. */
  reason: z.string().optional(),
  /** The reason as a sentence. */
  message: z.string().optional(),
  started_at: z.number().optional(),
  finished_at: z.number().optional(),
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean(),
  git_before: z.string().optional(),
  git_after: z.string().optional(),
  boot_id_before: z.string().optional(),
  boot_id_after: z.string().optional(),
});

/** An action. Its output here is the end; all of it is at GET /api/actions/{id}/output. */
export const actionRecord = z.object({
  id: z.string(),
  action: z.enum(ACTION_KINDS),
  /** The request in full, as parsed. */
  request: storedRequest,
  operator: z.object({ session: z.string(), ip: z.string() }),
  state: z.enum(ACTION_STATES),
  created_at: z.number(),
  started_at: z.number().optional(),
  finished_at: z.number().optional(),
  /** The exit code of the worst target. */
  exit_code: z.int().nullable(),
  stdout: z.string(),
  stderr: z.string(),
  targets: z.array(actionTarget),
});

/** An action as it is sent and kept. */
export type ActionRecord = z.infer<typeof actionRecord>;

/** The query of GET /api/actions/history, chronological (spec 4.1) unless it asks for the newest first. */
export const actionHistoryQuery = z.strictObject({ order: z.enum(["chronological", "newest"]).optional() });

/** GET /api/actions/history. */
export const actionHistoryReply = z.object({ records: z.array(actionRecord), total: z.int() });

/**
 * GET /api/actions/nodes: nodes for actions, and the enrolment command of every other node of the cluster.
 */
export const actionNodesReply = z.object({
  nodes: z.array(
    z.object({
      node_id: z.string(),
      node_name: z.string(),
      enrolled: z.boolean(),
      /**
       * The command for a machine with access to the metadata store; USER is its login. Absent for enrolled
       * nodes.
       */
      enrol_command: z.string().optional(),
    }),
  ),
});

/** The same as a value. */
export type ActionNodesReply = z.infer<typeof actionNodesReply>;

/** POST /api/actions/run. */
export const actionQueued = z.object({ id: z.string(), state: z.literal("queued") });

/** One piece of output; seq counts up over all nodes and streams of an action. ts is unix seconds. */
export const outputEntry = z.object({
  seq: z.int(),
  /** Number of the previous entry, of any node: a client with another last number has missed one. */
  after_seq: z.int(),
  ts: z.number(),
  node_id: z.string(),
  stream: z.enum(["stdout", "stderr"]),
  data: z.string(),
});

/** GET /api/actions/{id}/output. */
export const outputReply = z.object({
  entries: z.array(outputEntry),
  next_seq: z.int(),
  /** True when the action has ended and no output follows. */
  complete: z.boolean(),
});

/** The care that a preset needs: run it, ask once, or have it approved. */
const DANGERS = ["none", "confirm", "approve"] as const;

/** A prepared action, apart from the operator's choices. */
export const actionPreset = z.strictObject({
  id: z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/, "lower-case letters, digits and hyphens"),
  title: z.string().min(1).max(100),
  description: z.string().max(1_000),
  request: actionRequest,
  danger: z.enum(DANGERS),
});

/** One preset. */
export type ActionPreset = z.infer<typeof actionPreset>;

/** GET /api/actions/presets. */
export const presetsReply = z.array(actionPreset.extend({ request: storedRequest }));
