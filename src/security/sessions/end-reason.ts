// Reasons for which sessions end, and their texts for clients.
import type { ErrorCode } from "#base/errors.ts";

/** Ended session tokens whose reason (idle, expired, evicted) is kept. */
export const SESSION_TOMBSTONES = 10_000;
/** Users without a session whose last use is kept. */
export const LAST_ACTIVE_USERS_KEPT = 20_000;

/** Reason why a formerly valid token is refused. */
export type EndReason = Extract<
  ErrorCode,
  "SESSION_IDLE" | "SESSION_EXPIRED" | "SESSION_EVICTED" | "USER_DISABLED"
>;

/** Texts of the refusals. */
export const REFUSAL_TEXTS: Readonly<Record<EndReason, string>> = {
  SESSION_IDLE: "the session was idle for too long; sign in again",
  SESSION_EXPIRED: "the session has reached its end; sign in again",
  SESSION_EVICTED: "the session was replaced by a newer one of the same user; sign in again",
  USER_DISABLED: "this account is locked by an administrator",
};
