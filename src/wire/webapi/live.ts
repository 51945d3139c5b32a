// Messages of the WebSockets in both directions (decision D8).
import { z } from "zod";
import { alertRecord } from "./alert.ts";
import { clusterTotals, operatorNode, publicNode } from "./cluster.ts";
import { problem } from "./problem.ts";

/** Reasons for which the console closes a socket (decision D8). */
export const CLOSE_CODES = {
  noSession: 4401,
  origin: 4403,
  pingTimeout: 4408,
  slowReader: 4429,
} as const;

/** The subprotocol; a ticket follows it with TICKET_PREFIX. */
export const LIVE_PROTOCOL = "svc.v1";
/** Prefix of a ticket in Sec-WebSocket-Protocol. */
export const TICKET_PREFIX = "ticket.";

/**
 * Content of each message type. Every event after `resume_from_seq` is still kept. A client with a lower
 * number, or one above that of `hello`, has missed events and asks GET /api/alerts. Actions and logs have
 * numbers of their own.
 */
export const liveData = {
  hello: z.object({
    server_version: z.string(),
    session_expires_at: z.int().nullable(),
    resume_from_seq: z.int(),
  }),
  "metrics.snapshot": z.object({
    nodes: z.array(z.union([operatorNode, publicNode])),
    cluster: clusterTotals,
  }),
  "alert.raised": alertRecord,
  "alert.changed": alertRecord,
  "alert.resolved": alertRecord,
  "session.expiring": z.object({ expires_at: z.int() }),
  error: problem,
} as const;

/**
 * The envelope. `seq` counts per stream: /ws/cluster of visitors, /ws/cluster of operators, /ws/actions, each
 * action. It never goes back, not even over restarts of the console; missing numbers were snapshots. `hello`,
 * `error` and `session.expiring` carry the newest number without using one. `ts` is unix seconds and may have
 * decimals.
 */
export const liveMessage = z.object({
  v: z.literal(1),
  type: z.string(),
  seq: z.int(),
  ts: z.number(),
  data: z.unknown(),
});

/** Messages from a browser. */
export const liveRequest = z.union([
  z
    .object({
      type: z.enum(["subscribe", "unsubscribe"]),
      action_id: z.string(),
      after_seq: z.int().min(0).optional(),
    })
    .strict(),
  z.object({ type: z.enum(["subscribe", "unsubscribe"]), node: z.string(), service: z.string() }).strict(),
  /** Replies and changes are `rollout.state` with the record of rollout.ts and the record's `seq`. */
  z.object({ type: z.enum(["subscribe", "unsubscribe"]), rollout_id: z.string() }).strict(),
  /** Requests, once, the kept events between a number and `hello`; snapshots are not repeated. */
  z.object({ type: z.literal("resume"), after_seq: z.int().min(0) }).strict(),
  z.object({ type: z.literal("pong") }).strict(),
]);
