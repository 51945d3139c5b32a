// GET /api/users and the quota of one user (decisions D5, D6; spec 4.3).
import { z } from "zod";
import { count64 } from "./count64.ts";

/** One user in the list (decision D5). */
export const userRow = z.object({
  username: z.string(),
  quota_limit: count64,
  /** "pending": the home node has not reported, and quota_limit is the default (spec 5.9). */
  quota_source: z.enum(["explicit", "default", "pending"]),
  used_bytes: count64,
  live_bytes: count64,
  trash_bytes: count64,
  staging_bytes: count64,
  file_count: z.int(),
  /** Files and folders, trash included; null without a report of the home node, like the two below. */
  inode_count: z.int().nullable(),
  inode_limit: z.int().nullable(),
  inode_limit_source: z.enum(["explicit", "default"]).nullable(),
  usage_percent: z.number(),
  level: z.enum(["ok", "yellow", "red"]),
  /** True for a user whom an administrator has locked out. */
  locked: z.boolean(),
  home_node_id: z.string(),
  home_node_name: z.string(),
  last_active: z.int().nullable(),
  full_in_days: z.number().nullable(),
});

/** One user in the list. */
export type UserRow = z.infer<typeof userRow>;

/** GET /api/users. */
export const userList = z.object({
  users: z.array(userRow),
  total_users: z.int(),
  next_cursor: z.string().nullable(),
});

/** The reply to a changed quota (decision D6). */
export const quotaChanged = z.object({
  username: z.string(),
  quota_limit: count64,
  quota_source: z.enum(["explicit", "default"]),
  previous_limit: count64,
  /** The inode limit in force now, as the node reports it; null from a node without inode limits. */
  inode_limit: z.int().nullable(),
  home_node_id: z.string(),
  over_quota: z.boolean(),
  applied_at: z.int(),
});
