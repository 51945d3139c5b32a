// A user's trash as operators see it, with a reason that the user can read (decision D13).
import { z } from "zod";
import { count64 } from "./count64.ts";

/** One item. Times are unix seconds; null where the node reports none. */
export const userTrashItem = z.object({
  trash_id: z.string(),
  /** Its path before the removal. */
  path: z.string(),
  kind: z.enum(["file", "directory"]),
  size: count64,
  trashed_at: z.int().nullable(),
  expires_at: z.int().nullable(),
  trashed_by: z.string(),
});

/** One item of a user's trash. */
export type UserTrashItem = z.infer<typeof userTrashItem>;

/** The reply of POST /api/users/{username}/trash: newest first. */
export const userTrashPage = z.object({
  username: z.string(),
  node_id: z.string(),
  items: z.array(userTrashItem),
  /** Token of the next page; null on the last. */
  next_page_token: z.string().nullable(),
});

/** The reply of POST /api/users/{username}/trash/restore. */
export const userTrashRestored = z.object({
  username: z.string(),
  node_id: z.string(),
  /** Its path now. */
  path: z.string(),
});
