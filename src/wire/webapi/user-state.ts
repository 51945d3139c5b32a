// A user's right to sign in, as the console shows and changes it.
import { z } from "zod";

/** An administrator's decision about a user. */
export const userState = z.object({
  disabled: z.boolean(),
  /** True where the user's shares are closed too. */
  closes_shares: z.boolean(),
  reason: z.string(),
  set_by: z.string(),
  /** Unix seconds. */
  set_at: z.int(),
  /** Set for a removed user: end of the files' grace time, in unix seconds. The address is retired. */
  removed_until: z.int().nullable(),
});

/** A handed-over root. */
const handOver = z.object({
  to: z.string(),
  may_delete: z.boolean(),
  reason: z.string(),
  set_by: z.string(),
  /** Unix seconds. */
  set_at: z.int(),
  /** Unix seconds; the end, exclusive. */
  until: z.int(),
});

/** GET of a user's state. */
export const userStateKnown = z.object({
  username: z.string(),
  /** Null without any decision. */
  state: userState.nullable(),
  /** Current receivers of the user's root. */
  hand_overs: z.array(handOver),
  /** Roots currently handed over to the user; the first 100. */
  inherits: z.array(handOver.extend({ root: z.string() })),
});

/** The reply to a decision: the result on each node. */
export const userStateChanged = z.object({
  username: z.string(),
  disabled: z.boolean(),
  holds_everywhere: z.boolean(),
  nodes: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      holds: z.boolean(),
      sessions_ended: z.int(),
      /** Why it is not in force there; null where it is. */
      problem: z.string().nullable(),
    }),
  ),
});
