// The exit code of every refusal and failure (D24): exhaustive tables that a new code must extend.
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { ClientError, type ClientErrorCode, isLocalFailure } from "./client-error.ts";

/** The program's exit codes (decision D24). */
export const EXIT = {
  ok: 0,
  usage: 1,
  auth: 2,
  notFound: 3,
  denied: 4,
  quota: 5,
  diskReserve: 6,
  network: 7,
  /** Another process of Grove holds the folder. */
  busy: 8,
  /** Ended by Ctrl-C, as shells count it: 128 + SIGINT. */
  interrupted: 130,
} as const;

/** One of the program's exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Exit codes of servers' refusals (decisions D1, D24). */
export const EXIT_OF_REFUSAL: Readonly<Record<ErrorCode, ExitCode>> = {
  QUOTA_EXCEEDED: EXIT.quota,
  INODE_LIMIT: EXIT.quota,
  DISK_RESERVE: EXIT.diskReserve,
  RATE_LIMITED: EXIT.network,
  SESSION_MISSING: EXIT.auth,
  SESSION_UNKNOWN: EXIT.auth,
  SESSION_IDLE: EXIT.auth,
  SESSION_EXPIRED: EXIT.auth,
  SESSION_EVICTED: EXIT.auth,
  SESSION_TABLE_FULL: EXIT.network,
  IP_MISMATCH: EXIT.auth,
  NOT_OWNER: EXIT.denied,
  NOT_SHARED: EXIT.denied,
  NOT_ADMIN: EXIT.denied,
  USER_DISABLED: EXIT.denied,
  NO_SUCH_PATH: EXIT.notFound,
  PATH_EXISTS: EXIT.usage,
  NOT_EMPTY: EXIT.usage,
  IS_DIRECTORY: EXIT.usage,
  NOT_DIRECTORY: EXIT.usage,
  ETAG_MISMATCH: EXIT.usage,
  LOCKED: EXIT.usage,
  NO_SUCH_LOCK: EXIT.usage,
  SHARE_LIMIT: EXIT.usage,
  BAD_NAME: EXIT.usage,
  BAD_ARGUMENT: EXIT.usage,
  OFFSET_MISMATCH: EXIT.network,
  NO_SUCH_UPLOAD: EXIT.notFound,
  TOO_MANY_UPLOADS: EXIT.usage,
  UPLOAD_TAKEN_OVER: EXIT.usage,
  CHECKSUM_MISMATCH: EXIT.network,
  CORRUPT: EXIT.usage,
  WRONG_NODE: EXIT.network,
  ROOT_LOST: EXIT.denied,
  NODE_DRAINING: EXIT.network,
  STARTING: EXIT.network,
  IDP_UNAVAILABLE: EXIT.network,
  CLIENT_ID_UNSET: EXIT.auth,
  TOKEN_REJECTED: EXIT.auth,
  MOCK_TOKEN: EXIT.auth,
  CLIENT_CERT_REQUIRED: EXIT.auth,
  NODE_ID_HELD: EXIT.usage,
  FENCED: EXIT.network,
  CLUSTER_MISMATCH: EXIT.usage,
  VERSION_MISMATCH: EXIT.usage,
  STORAGE_FAILED: EXIT.network,
  DATA_IN_USE: EXIT.busy,
  STORE_UNAVAILABLE: EXIT.network,
  OVERLOADED: EXIT.network,
  NOT_IMPLEMENTED: EXIT.usage,
  INTERNAL: EXIT.usage,
};

/** Exit codes of the client's own failures (decision D24). */
export const EXIT_OF_CLIENT_ERROR: Readonly<Record<ClientErrorCode, ExitCode>> = {
  USAGE: EXIT.usage,
  CANCELLED: EXIT.interrupted,
  NETWORK: EXIT.network,
  SIGN_IN_NEEDED: EXIT.auth,
  SIGN_IN_FAILED: EXIT.auth,
  LOCAL_FILE: EXIT.usage,
  LOCAL_NOT_FOUND: EXIT.notFound,
  LOCAL_DENIED: EXIT.denied,
  SOURCE_FAILED: EXIT.network,
  SERVER_BROKEN: EXIT.usage,
  SERVER_DENIED: EXIT.denied,
  SERVER_LIMIT: EXIT.usage,
  SERVER_UNTRUSTED: EXIT.network,
};

/** The exit code of an error; 1 for unknown errors. */
export function exitCodeOf(error: unknown): ExitCode {
  // A failed disk of this machine is not a network failure.
  if (isLocalFailure(error)) return EXIT.usage;
  if (error instanceof GroveError) return EXIT_OF_REFUSAL[error.code];
  if (error instanceof ClientError) return EXIT_OF_CLIENT_ERROR[error.code];
  return EXIT.usage;
}
