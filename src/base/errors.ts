// The one error type of the product: a closed list of codes that every edge translates through its own table.

/**
 * Every reason for a refusal (decisions D1). Edges map a code to a gRPC status, an HTTP status or an exit
 * code through an exhaustive table, so that an unmapped code does not compile.
 */
export const ERROR_CODES = [
  "QUOTA_EXCEEDED",
  "INODE_LIMIT",
  "DISK_RESERVE",
  "RATE_LIMITED",
  "SESSION_MISSING",
  "SESSION_UNKNOWN",
  "SESSION_IDLE",
  "SESSION_EXPIRED",
  "SESSION_EVICTED",
  "SESSION_TABLE_FULL",
  "IP_MISMATCH",
  "NOT_OWNER",
  "NOT_SHARED",
  "NOT_ADMIN",
  "USER_DISABLED",
  "NO_SUCH_PATH",
  "PATH_EXISTS",
  "NOT_EMPTY",
  "IS_DIRECTORY",
  "NOT_DIRECTORY",
  "ETAG_MISMATCH",
  "LOCKED",
  "NO_SUCH_LOCK",
  "SHARE_LIMIT",
  "BAD_NAME",
  "BAD_ARGUMENT",
  "OFFSET_MISMATCH",
  "NO_SUCH_UPLOAD",
  "TOO_MANY_UPLOADS",
  "UPLOAD_TAKEN_OVER",
  "CHECKSUM_MISMATCH",
  "CORRUPT",
  "WRONG_NODE",
  "ROOT_LOST",
  "NODE_DRAINING",
  "STARTING",
  "IDP_UNAVAILABLE",
  "CLIENT_ID_UNSET",
  "TOKEN_REJECTED",
  "MOCK_TOKEN",
  "CLIENT_CERT_REQUIRED",
  "NODE_ID_HELD",
  "FENCED",
  "CLUSTER_MISMATCH",
  "VERSION_MISMATCH",
  "STORAGE_FAILED",
  "DATA_IN_USE",
  "STORE_UNAVAILABLE",
  "OVERLOADED",
  "NOT_IMPLEMENTED",
  "INTERNAL",
] as const;

/** One reason for a refusal (decisions D1). */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Machine-readable details of a refusal; values are plain text, never a secret. */
export type ErrorMetadata = Readonly<Record<string, string>>;

/** A refusal or failure with a machine-readable code and a sentence for people. Never holds a secret. */
export class GroveError extends Error {
  override readonly name = "GroveError";
  readonly code: ErrorCode;
  readonly metadata: ErrorMetadata;

  constructor(code: ErrorCode, message: string, options: { metadata?: ErrorMetadata; cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.metadata = options.metadata ?? {};
  }
}

/** True for a GroveError with one of the given codes (any code when none is given). */
export function isGroveError(error: unknown, ...codes: readonly ErrorCode[]): error is GroveError {
  return error instanceof GroveError && (codes.length === 0 || codes.includes(error.code));
}

/** Refusals that end an upload: the server drops its staged bytes, the client begins anew (D15). */
export const UPLOAD_ENDING_CODES: readonly ErrorCode[] = [
  "QUOTA_EXCEEDED",
  "NOT_OWNER",
  "NOT_SHARED",
  "NO_SUCH_PATH",
  "PATH_EXISTS",
  "IS_DIRECTORY",
  "NOT_DIRECTORY",
  "ETAG_MISMATCH",
];
