// Messages of the WebSockets, both ways (decision D8).
import { z } from "zod";
import { alertRecord } from "./alert.ts";
import { clusterTotals, operatorNode, publicNode } from "./cluster.ts";
import { problem } from "./problem.ts";

/** Why the console closes a socket (decision D8). */
export const CLOSE_CODES = {
  noSession: 4401,
  origin: 4403,
  pingTimeout: 4408,
  slowReader: 4429,
} as const;

/** The subprotocol, and what stands before a ticket behind it. */
export const LIVE_PROTOCOL = "svc.v1";
/** Prefix of a ticket in Sec-WebSocket-Protocol. */
export const TICKET_PREFIX = "ticket.";

/**
 * What a message of each type carries. `resume_from_seq` is the lowest number behind which every event is still kept: whoever comes back
 * with a lower one, or with one above the number of `hello`, has missed some, and asks GET /api/alerts. Actions and logs have theirs in
 * their own files.
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
 * The envelope. `seq` counts per stream: /ws/cluster of visitors, /ws/cluster of operators, /ws/actions, each action. It never goes back,
 * over restarts of the console neither; numbers that are left out were snapshots. `hello`, `error` and `session.expiring` carry the newest
 * number and take none. `ts` is unix seconds and may have decimals.
 */
export const liveMessage = z.object({
  v: z.literal(1),
  type: z.string(),
  seq: z.int(),
  ts: z.number(),
  data: z.unknown(),
});

/** What a browser may say. */
export const liveRequest = z.union([
  z
    .object({
      type: z.enum(["subscribe", "unsubscribe"]),
      action_id: z.string(),
      after_seq: z.int().min(0).optional(),
    })
    .strict(),
  z.object({ type: z.enum(["subscribe", "unsubscribe"]), node: z.string(), service: z.string() }).strict(),
  /** The answer, and every change: `rollout.state` with the whole record of rollout.ts; its `seq` is the record's. */
  z.object({ type: z.enum(["subscribe", "unsubscribe"]), rollout_id: z.string() }).strict(),
  /** Asks, once, for the events between a number and `hello`, as far as they are kept; snapshots are not repeated. */
  z.object({ type: z.literal("resume"), after_seq: z.int().min(0) }).strict(),
  z.object({ type: z.literal("pong") }).strict(),
]);
