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
  /** The MetaServers that the console was told to watch. */
  metaservers: z.array(
    z.object({
      /** host:port of its gRPC. */
      address: z.string(),
      /** "late" while the last look was in vain, "offline" after 30 s of that. */
      state: z.enum(["answering", "late", "offline"]),
      /** When it last answered; null before. */
      last_seen: z.int().nullable(),
      /** Why it does not answer. */
      reason: z.string().optional(),
    }),
  ),
  /** Whether the operator's password is the built-in one. */
  default_password: z.boolean(),
  is_https: z.boolean(),
});

/** What the console runs with. */
export type SettingsReply = z.infer<typeof settingsReply>;
