// The body of every unsuccessful answer: application/problem+json (RFC 9457, decision D2).
import { z } from "zod";

/** Every code of the console's problems (decision D2). Statuses: src/console/http/problem-table.ts. */
export const PROBLEM_CODES = [
  "BAD_JSON",
  "BAD_REQUEST",
  "AUTH_REQUIRED",
  "BAD_PASSWORD",
  "ORIGIN_REJECTED",
  "LOGIN_NEEDS_TLS",
  "DEFAULT_PASSWORD_REMOTE",
  "NO_SUCH_ROUTE",
  "NO_SUCH_NODE",
  "NO_SUCH_USER",
  "NO_SUCH_ALERT",
  "NO_SUCH_ACTION",
  "NO_SUCH_ROLLOUT",
  "NO_SUCH_SILENCE",
  "METHOD_NOT_ALLOWED",
  "NODES_LOCKED",
  "MOVES_REFUSED",
  "ADDRESS_REFUSED",
  "BODY_TOO_LARGE",
  "UNSUPPORTED_MEDIA_TYPE",
  "REQUEST_INVALID",
  "QUERY_INVALID",
  "QUOTA_INVALID",
  "USERNAME_INVALID",
  "ALERT_INVALID",
  "SILENCE_INVALID",
  "MAINTENANCE_INVALID",
  "ACTION_INVALID",
  "RATE_LIMITED",
  "HEADERS_TOO_LARGE",
  "INTERNAL",
  "NOT_IMPLEMENTED",
  "NODE_ERROR",
  "NODE_OFFLINE",
  "ACTIONS_UNAVAILABLE",
  "STARTING",
  "STORE_UNAVAILABLE",
  "NODE_TIMEOUT",
] as const;

/** A problem's code. */
export type ProblemCode = (typeof PROBLEM_CODES)[number];

/** One invalid place in a request. */
export const fieldProblem = z.object({
  /** JSON pointer into the body, or the name of a query parameter after "/query/". */
  pointer: z.string(),
  code: z.string(),
  detail: z.string(),
});

/** A problem (decision D2). */
export const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int().min(400).max(599),
  detail: z.string(),
  instance: z.string(),
  code: z.enum(PROBLEM_CODES),
  errors: z.array(fieldProblem).optional(),
  /** With NODES_LOCKED: the action that holds each node, and since when. */
  locked: z.array(z.object({ node_id: z.string(), action_id: z.string(), since: z.number() })).optional(),
  /** With NODE_ERROR: the gRPC status and the node's reason. */
  grpc_code: z.string().optional(),
  reason: z.string().optional(),
});

/** A problem, as sent. */
export type Problem = z.infer<typeof problem>;
