// Reasons for which sessions end, and their texts for clients.
import { type ErrorCode, GroveError } from "#base/errors.ts";

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
const REFUSAL_TEXTS: Readonly<Record<EndReason, string>> = {
  SESSION_IDLE: "the session was idle for too long; sign in again",
  SESSION_EXPIRED: "the session has reached its end; sign in again",
  SESSION_EVICTED: "the session was replaced by a newer one of the same user; sign in again",
  USER_DISABLED: "this account is locked by an administrator",
};

/** The refusal of a token whose session has ended, with the limit that ended it. */
export function endedBy(
  reason: EndReason,
  limits: { readonly idleTimeoutMs: number; readonly lifetimeMs: number; readonly perUser: number },
): GroveError {
  const metadata: Readonly<Record<EndReason, Record<string, string>>> = {
    SESSION_IDLE: { idle_timeout_seconds: String(limits.idleTimeoutMs / 1_000) },
    SESSION_EXPIRED: { lifetime_seconds: String(limits.lifetimeMs / 1_000) },
    SESSION_EVICTED: { sessions_per_user: String(limits.perUser) },
    USER_DISABLED: {},
  };
  return new GroveError(reason, REFUSAL_TEXTS[reason], { metadata: metadata[reason] });
}
