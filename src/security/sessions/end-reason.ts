// Why sessions end by themselves or by an administrator, in words for who had them.
import type { ErrorCode } from "#base/errors.ts";

/** Ended session tokens whose reason (idle, expired, evicted) is still told. */
export const SESSION_TOMBSTONES = 10_000;
/** Users without a session whose last use is still known. */
export const LAST_ACTIVE_USERS_KEPT = 20_000;

/** Why a token that was good once is good no more. */
export type EndReason = Extract<
  ErrorCode,
  "SESSION_IDLE" | "SESSION_EXPIRED" | "SESSION_EVICTED" | "USER_DISABLED"
>;

/** What whoever presents its token is told. */
export const REFUSAL_TEXTS: Readonly<Record<EndReason, string>> = {
  SESSION_IDLE: "the session was idle for too long; sign in again",
  SESSION_EXPIRED: "the session has reached its end; sign in again",
  SESSION_EVICTED: "the session was replaced by a newer one of the same user; sign in again",
  USER_DISABLED: "this account is locked by an administrator",
};
