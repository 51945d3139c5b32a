// What is kept of an action: who ran what where, and what came of it (spec 2.9, decision D7).
import { z } from "zod";
import { ACTION_KINDS } from "./action-request.ts";

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

/** What came of an action on one node. Times are unix seconds. */
const actionTarget = z.object({
  node_id: z.string(),
  node_name: z.string(),
  /** What ran there, word by word; several commands are told apart by "&&". */
  argv: z.array(z.string()),
  exit_code: z.int().nullable(),
  signal: z.string().optional(),
  state: z.enum(TARGET_STATES),
  /** Why, where the state does not say it: such as HOST_KEY_CHANGED. */
  reason: z.string().optional(),
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

/** An action. Output is the end of what came; all of it: GET /api/actions/{id}/output. */
export const actionRecord = z.object({
  id: z.string(),
  action: z.enum(ACTION_KINDS),
  /** The request in full, as it was understood. */
  request: z.looseObject({ action: z.enum(ACTION_KINDS), dry_run: z.boolean() }),
  operator: z.object({ session: z.string(), ip: z.string() }),
  state: z.enum(ACTION_STATES),
  created_at: z.number(),
  started_at: z.number().optional(),
  finished_at: z.number().optional(),
  /** That of the target which fared worst. */
  exit_code: z.int().nullable(),
  stdout: z.string(),
  stderr: z.string(),
  targets: z.array(actionTarget),
});

/** An action as it is sent and kept. */
export type ActionRecord = z.infer<typeof actionRecord>;

/** GET /api/actions/history: the newest first. */
export const actionHistoryReply = z.object({ records: z.array(actionRecord), total: z.int() });
