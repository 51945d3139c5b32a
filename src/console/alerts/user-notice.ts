// One notice to a user about their own quota, trash or sign-ins, before it takes a receiver's form.
import { z } from "zod";

/** What users are told about; each can be left out by the settings. */
export const USER_NOTICE_SUBJECTS = ["quota", "trash", "sign_in"] as const;

/** One of them. */
export type UserNoticeSubject = (typeof USER_NOTICE_SUBJECTS)[number];

/** Kinds of notices; a user gets at most one of each within 24 hours. */
const USER_NOTICE_KINDS = ["quota_80", "quota_95", "quota_full", "trash", "sign_in"] as const;

/** One kind. */
export type UserNoticeKind = (typeof USER_NOTICE_KINDS)[number];

/** Byte counts above 2^53 - 1 are decimal strings (T17). */
const bytes = z.union([z.number(), z.string()]);

/** One notice. Times are wall milliseconds. */
export const userNoticeShape = z.object({
  kind: z.enum(USER_NOTICE_KINDS),
  /** Who is told. */
  username: z.string(),
  /** The group whose root it is about, for a member who manages it. */
  group: z.string().optional(),
  atMs: z.number(),
  usedBytes: bytes.optional(),
  quotaBytes: bytes.optional(),
  trashBytes: bytes.optional(),
  /** When the oldest item of the trash is deleted. */
  expiresMs: z.number().optional(),
  /** Where a sign-in came from. */
  address: z.string().optional(),
  device: z.string().optional(),
});

/** One notice. */
export type UserNotice = z.infer<typeof userNoticeShape>;
