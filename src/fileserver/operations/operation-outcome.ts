// Separates refusals that are the right answer from failures of this node that an error rate must show (T4).
import { type ErrorCode, GroveError } from "#base/errors.ts";
import type { OperationOutcome } from "#telemetry/node-telemetry.ts";
import { Code, MalformedMessageError, StatusError } from "#wire/framing/status.ts";

/**
 * The cause of each code: "refused" for the caller or the request, "failed" for a node that could not do its
 * work. As an error, a full quota would raise `error_spike` on a healthy node for one user's full root.
 */
const OUTCOMES: Readonly<Record<ErrorCode, Exclude<OperationOutcome, "done">>> = {
  QUOTA_EXCEEDED: "refused",
  INODE_LIMIT: "refused",
  DISK_RESERVE: "failed",
  RATE_LIMITED: "refused",
  SESSION_MISSING: "refused",
  SESSION_UNKNOWN: "refused",
  SESSION_IDLE: "refused",
  SESSION_EXPIRED: "refused",
  SESSION_EVICTED: "refused",
  SESSION_TABLE_FULL: "failed",
  IP_MISMATCH: "refused",
  NOT_OWNER: "refused",
  NOT_SHARED: "refused",
  NOT_ADMIN: "refused",
  USER_DISABLED: "refused",
  NO_SUCH_PATH: "refused",
  PATH_EXISTS: "refused",
  NOT_EMPTY: "refused",
  IS_DIRECTORY: "refused",
  NOT_DIRECTORY: "refused",
  ETAG_MISMATCH: "refused",
  LOCKED: "refused",
  NO_SUCH_LOCK: "refused",
  SHARE_LIMIT: "refused",
  BAD_NAME: "refused",
  BAD_ARGUMENT: "refused",
  OFFSET_MISMATCH: "refused",
  NO_SUCH_UPLOAD: "refused",
  TOO_MANY_UPLOADS: "refused",
  UPLOAD_TAKEN_OVER: "refused",
  // The bytes were damaged before they came here.
  CHECKSUM_MISMATCH: "refused",
  CORRUPT: "failed",
  WRONG_NODE: "refused",
  // A planned stop is no failure; /ready shows its length.
  ROOT_LOST: "refused",
  NODE_DRAINING: "refused",
  STARTING: "refused",
  IDP_UNAVAILABLE: "failed",
  CLIENT_ID_UNSET: "failed",
  TOKEN_REJECTED: "refused",
  MOCK_TOKEN: "refused",
  CLIENT_CERT_REQUIRED: "refused",
  NODE_ID_HELD: "failed",
  FENCED: "failed",
  CLUSTER_MISMATCH: "failed",
  VERSION_MISMATCH: "refused",
  STORAGE_FAILED: "failed",
  DATA_IN_USE: "failed",
  STORE_UNAVAILABLE: "failed",
  // As failures, a client's excess calls would raise `error_spike`.
  OVERLOADED: "refused",
  NOT_IMPLEMENTED: "refused",
  INTERNAL: "failed",
};

/** Statuses for a client's doing: it went away, sent too much or too little, or missed its deadline. */
const CLIENT_STATUSES: ReadonlySet<Code> = new Set([
  Code.CANCELLED,
  Code.DEADLINE_EXCEEDED,
  Code.INVALID_ARGUMENT,
  Code.OUT_OF_RANGE,
  Code.RESOURCE_EXHAUSTED,
  Code.UNIMPLEMENTED,
]);

/** The outcome of an operation, or of a call, that threw this. */
export function outcomeOf(error: unknown): Exclude<OperationOutcome, "done"> {
  if (error instanceof GroveError) return OUTCOMES[error.code];
  if (!(error instanceof StatusError)) return "failed";
  // As failures, garbage from any session would raise `error_spike`.
  if (error instanceof MalformedMessageError) return "refused";
  if (error.cause instanceof GroveError) return OUTCOMES[error.cause.code];
  return CLIENT_STATUSES.has(error.code) ? "refused" : "failed";
}
