// The failures that a command with many files or paths ends by.
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { isClientError, isFullDisk } from "#client/terminal/client-error.ts";

/** Refusals that everything else would get too. */
const FINAL_CODES: readonly ErrorCode[] = [
  "SESSION_MISSING",
  "SESSION_UNKNOWN",
  "SESSION_IDLE",
  "SESSION_EXPIRED",
  "SESSION_EVICTED",
  "SESSION_TABLE_FULL",
  "IP_MISMATCH",
  "USER_DISABLED",
  "TOKEN_REJECTED",
  "MOCK_TOKEN",
  "IDP_UNAVAILABLE",
  "CLIENT_ID_UNSET",
  "WRONG_NODE",
  "STORAGE_FAILED",
  "NODE_DRAINING",
  "STARTING",
  "OVERLOADED",
  "CLUSTER_MISMATCH",
  "VERSION_MISMATCH",
];

/** True for a failure that ends the whole command: everything else would fail too. */
export function isFinal(error: unknown): boolean {
  if (error instanceof GroveError) return FINAL_CODES.includes(error.code);
  return (
    isFullDisk(error) || isClientError(error, "CANCELLED", "NETWORK", "SIGN_IN_NEEDED", "SERVER_UNTRUSTED")
  );
}
