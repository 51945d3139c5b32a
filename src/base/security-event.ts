// Security events that the rooms report: attempts that point to an attacker or a misconfiguration (D22).

/** Kinds of security events (spec 6, decision D22). */
export const SECURITY_EVENT_TYPES = [
  "ip_mismatch",
  "mock_token",
  "admin_hash_failed",
  "unknown_cert",
] as const;

/** One kind of security event. */
export type SecurityEventType = (typeof SECURITY_EVENT_TYPES)[number];

/** The facts of one event as the reporting room saw them. Never holds a token or a hash. */
export interface SecurityEventFacts {
  readonly type: SecurityEventType;
  /** True when an operator must look at once (spec 5.7: a mock token in production). */
  readonly fatal?: boolean;
  /** The user whom the event concerns, where one is known. */
  readonly username?: string;
  /** Address that the session is bound to. */
  readonly ipBound?: string;
  /** Address that the request came from. */
  readonly ipSeen?: string;
  /** Number of attempts in this report, at least 1. */
  readonly count?: number;
}

/** Takes reports of security events; must not throw. */
export type SecurityEventSink = (event: SecurityEventFacts) => void;
