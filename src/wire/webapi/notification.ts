// Silences, acknowledgements and sent notifications: the routes /api/silences and /api/notices (D11).
import { z } from "zod";
import { SILENCE_VALUE_MAX_LENGTH } from "#base/limits.ts";
import { UNTIL_TEXT_MAX_LENGTH } from "#base/until-text.ts";
import { ALERT_TYPES } from "./alert.ts";

/** Matchers of one silence. */
const SILENCE_MATCHERS_MAX = 16;

/** Fields that a silence may match. */
export const MATCHER_NAMES = ["node_id", "type", "severity", "username"] as const;

/** One matcher of a silence; all of them must hold. A pattern must match the whole value. */
const silenceMatcher = z
  .object({
    name: z.enum(MATCHER_NAMES),
    value: z.string().max(SILENCE_VALUE_MAX_LENGTH),
    is_regex: z.boolean().default(false),
  })
  .strict();

/** One stored matcher of a silence. */
export type SilenceMatcher = z.infer<typeof silenceMatcher>;

/** The requested end: one of the first two fields. */
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

/** An operator's request for a silence. */
export type SilenceRequest = z.infer<typeof silenceRequest>;

/** A silence without its time-dependent state. */
export const storedSilence = z.object({
  id: z.string(),
  matchers: z.array(silenceMatcher).min(1),
  starts_at: z.int(),
  ends_at: z.int(),
  created_by: z.string(),
  created_at: z.int(),
  comment: z.string(),
});

/** A silence as stored. */
export type StoredSilence = z.infer<typeof storedSilence>;

/** A silence as sent. */
export const silence = storedSilence.extend({ state: z.enum(["pending", "active", "expired"]) });

/** A silence as sent. */
export type Silence = z.infer<typeof silence>;

/** GET /api/silences: active and pending ones before expired ones, newest first in each group. */
export const silenceList = z.object({ silences: z.array(silence) });

/** Why an open alert is not sent. */
export const MUTE_REASONS = ["starting", "silence", "node_offline", "maintenance", "flapping"] as const;

/** One alert in the notification layer. */
const notificationAlert = z.object({
  key: z.string(),
  type: z.enum(ALERT_TYPES),
  severity: z.enum(["warning", "critical"]),
  since: z.int(),
  node_id: z.string().optional(),
  username: z.string().optional(),
  /** Absent until it has been sent. */
  told_at: z.int().optional(),
  muted_by: z.enum(MUTE_REASONS).optional(),
  acked: z.boolean(),
});

/** One sent or waiting message. */
const notificationMessage = z.object({
  id: z.string(),
  receiver: z.string(),
  status: z.enum(["firing", "resolved"]),
  created_at: z.int(),
  state: z.enum(["waiting", "delivered", "refused", "expired", "dropped"]),
  finished_at: z.int().optional(),
  tries: z.int(),
  /** Of a delivered mail: which of its recipients do not have it, and why. */
  missed: z.string().optional(),
  group: z.record(z.string(), z.string()),
  alerts: z.array(z.object({ key: z.string(), status: z.enum(["firing", "resolved"]), reason: z.string() })),
});

/** One sent or waiting message, as the API returns it. */
export type NotificationMessage = z.infer<typeof notificationMessage>;

/** State of one receiver. */
const notificationReceiver = z.object({
  name: z.string(),
  kind: z.enum(["webhook", "email"]),
  state: z.enum(["ok", "untried", "failing"]),
  last_delivery_at: z.int().optional(),
  last_error: z.string().optional(),
  waiting: z.int(),
});

/** State of one receiver, as sent. */
export type NotificationReceiver = z.infer<typeof notificationReceiver>;

/** GET /api/notices. */
export const noticesReply = z.object({
  /** False while the settings name no receiver: then nothing is sent (spec 6). */
  enabled: z.boolean(),
  receivers: z.array(notificationReceiver),
  alerts: z.array(notificationAlert),
  /** Waiting messages, oldest first, and finished ones, newest first. */
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

/** GET /api/notices as sent. */
export type NoticesReply = z.infer<typeof noticesReply>;
