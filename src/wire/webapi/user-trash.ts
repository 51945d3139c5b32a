// A user's trash as operators see it, for a reason that the user is shown (decision D13).
import { z } from "zod";
import { count64 } from "./count64.ts";

/** One item. Times are unix seconds; null where the node tells none. */
export const userTrashItem = z.object({
  trash_id: z.string(),
  /** Where it was. */
  path: z.string(),
  kind: z.enum(["file", "directory"]),
  size: count64,
  trashed_at: z.int().nullable(),
  expires_at: z.int().nullable(),
  trashed_by: z.string(),
});

/** One item of a user's trash. */
export type UserTrashItem = z.infer<typeof userTrashItem>;

/** What POST /api/users/{username}/trash answers: the newest first. */
export const userTrashPage = z.object({
  username: z.string(),
  node_id: z.string(),
  items: z.array(userTrashItem),
  /** Names the next page; null on the last. */
  next_page_token: z.string().nullable(),
});

/** What POST /api/users/{username}/trash/restore answers. */
export const userTrashRestored = z.object({
  username: z.string(),
  node_id: z.string(),
  /** Where it is now. */
  path: z.string(),
});
