// Roots that move between nodes: the routes /api/moves, /api/drains and /api/rebalance, for operators (D27).
import { z } from "zod";

const bytes = z.int().min(0);

/** A move. */
export const rootMove = z.object({
  owner: z.string(),
  from: z.string(),
  from_name: z.string(),
  to: z.string(),
  to_name: z.string(),
  state: z.enum(["copying", "frozen", "switched", "confirmed", "undone", "returned"]),
  /** Of its bytes; null where they are not known, and after the switch. */
  percent: z.number().min(0).max(100).nullable(),
  /** At the pace since its beginning. */
  remaining_seconds: z.number().min(0).nullable(),
  copied_bytes: bytes,
  total_bytes: bytes.nullable(),
  /** Why it does not go on; of one that has switched: its target lacks the root. */
  problem: z.string().nullable(),
  started_at: z.int(),
  changed_at: z.int(),
});

/** A move. */
export type RootMoveView = z.infer<typeof rootMove>;

/** Where the roots of a node go that is taken out of service: without it to the other nodes with disks. */
export const drainRequest = z.object({ to_engine: z.boolean() }).strict().nullish();

/** A node that is taken out of service. */
export const drain = z.object({
  node_id: z.string(),
  node_name: z.string(),
  /** False when this console moves none of its roots: a drain that was typed, or that has ended. */
  driven: z.boolean(),
  /** Roots that are on it. */
  roots_left: z.int(),
  under_way: z.int(),
  /** Copies that it keeps until they are confirmed. */
  kept_copies: z.int(),
  /** Copies that were confirmed, and that it removes now or once it runs. */
  removing_copies: z.int(),
  /** True while this console moves its roots to the shared engine, or within it. */
  to_engine: z.boolean(),
  /** What takes it out of the cluster once it is empty and stopped. */
  remove_command: z.string(),
  problem: z.string().nullable(),
});

/** A node that is taken out of service. */
export type DrainView = z.infer<typeof drain>;

/** GET /api/moves. */
export const moveList = z.object({
  /** Those under way first; at most 500. */
  moves: z.array(rootMove),
  moves_total: z.int(),
  drains: z.array(drain),
  /** The rebalancing that this console runs; null for none. */
  rebalance: z.object({ waiting: z.int(), problem: z.string().nullable() }).nullable(),
});

/** GET /api/moves. */
export type MoveList = z.infer<typeof moveList>;

const plannedMove = z.object({
  owner: z.string(),
  bytes,
  from: z.string(),
  from_name: z.string(),
  to: z.string(),
  to_name: z.string(),
});

/** A move of a plan. */
export type PlannedMoveView = z.infer<typeof plannedMove>;

/** POST /api/drains/:fsID/plan; nothing begins. */
export const drainPlan = z.object({
  node_id: z.string(),
  node_name: z.string(),
  /** False for a node that does not tell how large its roots are; targets check their room then. */
  sizes_known: z.boolean(),
  /** The largest first; at most 1000. */
  moves: z.array(plannedMove),
  moves_total: z.int(),
  bytes_total: bytes,
  /** Roots that are on their way already. */
  under_way: z.int(),
  /** True for a plan to nodes of the shared engine. */
  to_engine: z.boolean(),
  /** True for a node of the engine: its roots change hands, nothing is copied, and nothing waits to be confirmed. */
  on_engine: z.boolean(),
  /** Running nodes of the engine that could take roots. */
  engine_nodes: z.int(),
  /** Roots for which no node has room; with any, nothing begins. */
  without_room: z.array(z.object({ owner: z.string(), bytes, missing_bytes: bytes })),
  without_room_total: z.int(),
  /** What else keeps it from beginning, in sentences. */
  blocked_by: z.array(z.string()),
});

/** POST /api/drains/:fsID/plan. */
export type DrainPlanView = z.infer<typeof drainPlan>;

/** POST /api/rebalance/plan; nothing begins. */
export const rebalancePlan = z.object({
  /** Starts these very moves, for 10 minutes. */
  plan_id: z.string(),
  moves: z.array(plannedMove),
  bytes_total: bytes,
  /** Names of nodes whose roots stay, since they do not tell their sizes. */
  silent_nodes: z.array(z.string()),
});

/** POST /api/rebalance/plan. */
export type RebalancePlanView = z.infer<typeof rebalancePlan>;

/** POST /api/rebalance. */
export const rebalanceRequest = z.object({ plan_id: z.string().max(64) }).strict();

/** The answer to a decision about copies. */
export const decided = z.object({ decided: z.int() });
