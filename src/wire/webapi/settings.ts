// GET /api/settings: the console's settings, for operators.
import { z } from "zod";

/** The console's settings. Times are unix seconds. */
export const settingsReply = z.object({
  /** The shared metadata store, without its user and password. */
  store: z.object({
    kind: z.enum(["sqlite", "postgres"]).nullable(),
    /** A path, or host:port/database. */
    place: z.string().nullable(),
    /** "unread" until its first answer. */
    state: z.enum(["unread", "answering", "failing"]),
    /** Time of its last answer. */
    read_at: z.int().nullable(),
  }),
  /** The MetaServers that the console watches. */
  metaservers: z.array(
    z.object({
      /** host:port of its gRPC listener. */
      address: z.string(),
      /** "late" after a failed check, "offline" after 30 s of failed checks. */
      state: z.enum(["answering", "late", "offline"]),
      /** Time of its last answer; null before the first. */
      last_seen: z.int().nullable(),
      /** Why it does not answer. */
      reason: z.string().optional(),
    }),
  ),
  /** Whether the operator's password is the built-in one. */
  default_password: z.boolean(),
  is_https: z.boolean(),
});

/** The console's settings. */
export type SettingsReply = z.infer<typeof settingsReply>;
