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
});

/** GET of a user's state. */
export const userStateKnown = z.object({
  username: z.string(),
  /** Null where nothing was ever decided. */
  state: userState.nullable(),
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
