// GET /api/settings: what the console runs with, for operators.
import { z } from "zod";

/** What the console runs with. Times are unix seconds. */
export const settingsReply = z.object({
  /** The shared metadata store; never its user or password. */
  store: z.object({
    kind: z.enum(["sqlite", "postgres"]).nullable(),
    /** A path, or host:port/database. */
    place: z.string().nullable(),
    /** "unread" until it has answered for the first time. */
    state: z.enum(["unread", "answering", "failing"]),
    /** When it last answered. */
    read_at: z.int().nullable(),
  }),
  /** Whether the operator's password is the built-in one. */
  default_password: z.boolean(),
  is_https: z.boolean(),
});

/** What the console runs with. */
export type SettingsReply = z.infer<typeof settingsReply>;
