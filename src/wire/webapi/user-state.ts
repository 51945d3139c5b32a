// Whether a user may come in, as the console shows and changes it.
import { z } from "zod";

/** A decision about a user. */
export const userState = z.object({
  disabled: z.boolean(),
  /** What the user shares is closed as well. */
  closes_shares: z.boolean(),
  reason: z.string(),
  set_by: z.string(),
  /** Unix seconds. */
  set_at: z.int(),
  /** Set for a removed user: the files are kept until then, in unix seconds. The address is retired. */
  removed_until: z.int().nullable(),
});

/** A root that an administrator has handed over. */
const handOver = z.object({
  to: z.string(),
  may_delete: z.boolean(),
  reason: z.string(),
  set_by: z.string(),
  /** Unix seconds. */
  set_at: z.int(),
  /** Unix seconds; it holds no more from then on. */
  until: z.int(),
});

/** GET of a user's state. */
export const userStateKnown = z.object({
  username: z.string(),
  /** Null where nothing was ever decided. */
  state: userState.nullable(),
  /** To whom the user's root is handed over now. */
  hand_overs: z.array(handOver),
  /** Whose roots are handed over to the user now; the first 100. */
  inherits: z.array(handOver.extend({ root: z.string() })),
});

/** What a decision answers: each node for itself. */
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
      /** Why it does not hold there; null where it does. */
      problem: z.string().nullable(),
    }),
  ),
});
