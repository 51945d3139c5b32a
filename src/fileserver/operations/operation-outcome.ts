// Which refusals are the right answer to what was asked, and which are failures of this node that an error rate must show (T4).
import { type ErrorCode, GroveError } from "#base/errors.ts";
import type { OperationOutcome } from "#telemetry/node-telemetry.ts";
import { Code, MalformedMessageError, StatusError } from "#wire/framing/status.ts";

/**
 * Whose matter each refusal is: "refused" when the caller, or what the caller sent, is the reason; "failed" when the node could not do
 * what it is there for. Were a full quota an error, one user with a full root would raise `error_spike` on a node that is well.
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
  // A planned stop is no failure; its length shows in /ready.
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
  STORAGE_FAILED: "failed",
  DATA_IN_USE: "failed",
  STORE_UNAVAILABLE: "failed",
  // Whoever sends more than is taken could raise `error_spike` with what is refused of it.
  OVERLOADED: "refused",
  NOT_IMPLEMENTED: "refused",
  INTERNAL: "failed",
};

/** Statuses that the room grpc gives to what a client did: it went away, sent too much or too little, or let its deadline pass. */
const CLIENT_STATUSES: ReadonlySet<Code> = new Set([
  Code.CANCELLED,
  Code.DEADLINE_EXCEEDED,
  Code.INVALID_ARGUMENT,
  Code.OUT_OF_RANGE,
  Code.RESOURCE_EXHAUSTED,
  Code.UNIMPLEMENTED,
]);

/** How an operation ended that threw this, or a call that ended with it. */
export function outcomeOf(error: unknown): Exclude<OperationOutcome, "done"> {
  if (error instanceof GroveError) return OUTCOMES[error.code];
  if (!(error instanceof StatusError)) return "failed";
  // Whoever has a session could raise `error_spike` with garbage.
  if (error instanceof MalformedMessageError) return "refused";
  if (error.cause instanceof GroveError) return OUTCOMES[error.cause.code];
  return CLIENT_STATUSES.has(error.code) ? "refused" : "failed";
}
