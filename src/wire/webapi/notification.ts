// Silences, acknowledgements and what has been told: the routes /api/silences and /api/notices (decision D11).
import { z } from "zod";
import { SILENCE_VALUE_MAX_LENGTH } from "#base/limits.ts";
import { UNTIL_TEXT_MAX_LENGTH } from "#base/until-text.ts";
import { ALERT_TYPES } from "./alert.ts";

/** Matchers of one silence. */
const SILENCE_MATCHERS_MAX = 16;

/** What a silence may look at. */
export const MATCHER_NAMES = ["node_id", "type", "severity", "username"] as const;

/** One condition of a silence; all of them must hold. A pattern must match the whole value. */
const silenceMatcher = z
  .object({
    name: z.enum(MATCHER_NAMES),
    value: z.string().max(SILENCE_VALUE_MAX_LENGTH),
    is_regex: z.boolean().default(false),
  })
  .strict();

/** One condition of a silence as it is kept. */
export type SilenceMatcher = z.infer<typeof silenceMatcher>;

/** When something that is asked for ends: one of the first two. */
export const endAsked = {
  /** Unix seconds. */
  ends_at: z.int().min(0).optional(),
  duration: z
    .string()
    .min(1)
    .max(UNTIL_TEXT_MAX_LENGTH)
    .optional()
    .describe('For how long, or until when: "2h", "1d 12h", "until tomorrow 08:00", "Friday 18:00"'),
  time_zone: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('Whose clock a duration means, such as "Europe/Berlin"; default the console\'s'),
} as const;

/** POST /api/silences. Times are unix seconds; without starts_at it begins at once. */
export const silenceRequest = z
  .object({
    matchers: z.array(silenceMatcher).min(1).max(SILENCE_MATCHERS_MAX),
    starts_at: z.int().min(0).optional(),
    ...endAsked,
    created_by: z.string().min(1).max(128).optional(),
    comment: z.string().max(1024).default(""),
  })
  .strict();

/** What an operator asks for. */
export type SilenceRequest = z.infer<typeof silenceRequest>;

/** A silence without what the moment decides. */
export const keptSilence = z.object({
  id: z.string(),
  matchers: z.array(silenceMatcher).min(1),
  starts_at: z.int(),
  ends_at: z.int(),
  created_by: z.string(),
  created_at: z.int(),
  comment: z.string(),
});

/** A silence as it is kept. */
export type KeptSilence = z.infer<typeof keptSilence>;

/** A silence as it is sent. */
export const silence = keptSilence.extend({ state: z.enum(["pending", "active", "expired"]) });

/** A silence as it is sent. */
export type Silence = z.infer<typeof silence>;

/** GET /api/silences: those that have not ended first, the newest of each first. */
export const silenceList = z.object({ silences: z.array(silence) });

/** Why an alert that stands is not told. */
export const MUTE_REASONS = ["starting", "silence", "node_offline", "maintenance", "flapping"] as const;

/** One alert as the notification layer sees it. */
const notificationAlert = z.object({
  key: z.string(),
  type: z.enum(ALERT_TYPES),
  severity: z.enum(["warning", "critical"]),
  since: z.int(),
  node_id: z.string().optional(),
  username: z.string().optional(),
  /** Absent while it has not been told. */
  told_at: z.int().optional(),
  muted_by: z.enum(MUTE_REASONS).optional(),
  acked: z.boolean(),
});

/** One message that went out or waits. */
const notificationMessage = z.object({
  id: z.string(),
  receiver: z.string(),
  status: z.enum(["firing", "resolved"]),
  created_at: z.int(),
  state: z.enum(["waiting", "delivered", "refused", "expired", "dropped"]),
  finished_at: z.int().optional(),
  tries: z.int(),
  group: z.record(z.string(), z.string()),
  alerts: z.array(z.object({ key: z.string(), status: z.enum(["firing", "resolved"]), reason: z.string() })),
});

/** One message that went out or waits, as it is sent. */
export type NotificationMessage = z.infer<typeof notificationMessage>;

/** How one receiver does. */
const notificationReceiver = z.object({
  name: z.string(),
  kind: z.enum(["webhook", "email"]),
  state: z.enum(["ok", "untried", "failing"]),
  last_delivery_at: z.int().optional(),
  last_error: z.string().optional(),
  waiting: z.int(),
});

/** How one receiver does, as it is sent. */
export type NotificationReceiver = z.infer<typeof notificationReceiver>;

/** GET /api/notices. */
export const noticesReply = z.object({
  /** False while no settings name a receiver: then nothing is told (spec 6). */
  enabled: z.boolean(),
  receivers: z.array(notificationReceiver),
  alerts: z.array(notificationAlert),
  /** What waits, the oldest first, and what is done, the newest first. */
  waiting: z.array(notificationMessage),
  done: z.array(notificationMessage),
  counts: z.object({
    delivered: z.int(),
    refused: z.int(),
    expired: z.int(),
    dropped: z.int(),
    unwatched: z.int(),
  }),
  maintenance: z.array(
    z.object({ id: z.string(), node_ids: z.array(z.string()), until: z.int(), reason: z.string() }),
  ),
});

/** GET /api/notices as it is sent. */
export type NoticesReply = z.infer<typeof noticesReply>;
