// The one table from Grove's refusals to gRPC: status code, error details and plain trailers (decision D1).
import { ERROR_CODES, type ErrorCode, type ErrorMetadata, type GroveError } from "#base/errors.ts";
import { Code } from "#wire/framing/status.ts";

/** The `domain` of every ErrorInfo that Grove sends (decision D1). */
export const ERROR_DOMAIN = "grove";

/** The trailer that carries the reason, which is the error code's name (decision D1). */
export const REASON_TRAILER = "svc-reason";

const GRPC_CODES: Readonly<Record<ErrorCode, Code>> = {
  QUOTA_EXCEEDED: Code.RESOURCE_EXHAUSTED,
  INODE_LIMIT: Code.RESOURCE_EXHAUSTED,
  DISK_RESERVE: Code.RESOURCE_EXHAUSTED,
  RATE_LIMITED: Code.RESOURCE_EXHAUSTED,
  SESSION_MISSING: Code.UNAUTHENTICATED,
  SESSION_UNKNOWN: Code.UNAUTHENTICATED,
  SESSION_IDLE: Code.UNAUTHENTICATED,
  SESSION_EXPIRED: Code.UNAUTHENTICATED,
  SESSION_EVICTED: Code.UNAUTHENTICATED,
  SESSION_TABLE_FULL: Code.RESOURCE_EXHAUSTED,
  IP_MISMATCH: Code.PERMISSION_DENIED,
  NOT_OWNER: Code.PERMISSION_DENIED,
  NOT_SHARED: Code.PERMISSION_DENIED,
  NOT_ADMIN: Code.PERMISSION_DENIED,
  USER_DISABLED: Code.PERMISSION_DENIED,
  NO_SUCH_PATH: Code.NOT_FOUND,
  PATH_EXISTS: Code.ALREADY_EXISTS,
  NOT_EMPTY: Code.FAILED_PRECONDITION,
  IS_DIRECTORY: Code.FAILED_PRECONDITION,
  NOT_DIRECTORY: Code.FAILED_PRECONDITION,
  ETAG_MISMATCH: Code.FAILED_PRECONDITION,
  LOCKED: Code.FAILED_PRECONDITION,
  NO_SUCH_LOCK: Code.FAILED_PRECONDITION,
  SHARE_LIMIT: Code.FAILED_PRECONDITION,
  BAD_NAME: Code.INVALID_ARGUMENT,
  BAD_ARGUMENT: Code.INVALID_ARGUMENT,
  OFFSET_MISMATCH: Code.ABORTED,
  NO_SUCH_UPLOAD: Code.NOT_FOUND,
  TOO_MANY_UPLOADS: Code.RESOURCE_EXHAUSTED,
  UPLOAD_TAKEN_OVER: Code.ABORTED,
  CHECKSUM_MISMATCH: Code.ABORTED,
  CORRUPT: Code.DATA_LOSS,
  WRONG_NODE: Code.FAILED_PRECONDITION,
  ROOT_LOST: Code.DATA_LOSS,
  NODE_DRAINING: Code.UNAVAILABLE,
  STARTING: Code.UNAVAILABLE,
  IDP_UNAVAILABLE: Code.UNAVAILABLE,
  CLIENT_ID_UNSET: Code.FAILED_PRECONDITION,
  TOKEN_REJECTED: Code.UNAUTHENTICATED,
  MOCK_TOKEN: Code.UNAUTHENTICATED,
  CLIENT_CERT_REQUIRED: Code.UNAUTHENTICATED,
  NODE_ID_HELD: Code.ALREADY_EXISTS,
  FENCED: Code.FAILED_PRECONDITION,
  CLUSTER_MISMATCH: Code.FAILED_PRECONDITION,
  VERSION_MISMATCH: Code.FAILED_PRECONDITION,
  STORAGE_FAILED: Code.UNAVAILABLE,
  DATA_IN_USE: Code.UNAVAILABLE,
  STORE_UNAVAILABLE: Code.UNAVAILABLE,
  OVERLOADED: Code.UNAVAILABLE,
  NOT_IMPLEMENTED: Code.UNIMPLEMENTED,
  INTERNAL: Code.INTERNAL,
};

/** Trailers for clients without protobuf details, each with the metadata key that it repeats. */
const TRAILERS: readonly (readonly [trailer: string, key: string])[] = [
  ["svc-used-bytes", "used"],
  ["svc-quota-bytes", "quota"],
  ["svc-free-bytes", "free_bytes"],
  ["svc-usable-bytes", "usable_bytes"],
  ["svc-inodes", "inodes"],
  ["svc-inode-limit", "inode_limit"],
  ["svc-offset", "offset"],
  ["svc-address", "address"],
  ["svc-retry-after-ms", "retry_after_ms"],
];

/** Fields of a refusal's google.rpc.ErrorInfo (decision D1). */
export interface ErrorFacts {
  readonly reason: ErrorCode;
  readonly domain: string;
  readonly metadata: ErrorMetadata;
}

/** The gRPC status of a refusal (decision D1); a new code without a row does not compile. */
export function grpcCodeOf(code: ErrorCode): Code {
  return GRPC_CODES[code];
}

/** The fields of the refusal's google.rpc.ErrorInfo (decision D1). */
export function errorDetailsOf(error: GroveError): ErrorFacts {
  return { reason: error.code, domain: ERROR_DOMAIN, metadata: error.metadata };
}

/**
 * The same as plain ASCII trailers (decision D1): `svc-reason`, and those whose metadata key the refusal
 * carries. These are `svc-used-bytes`, `svc-quota-bytes`, `svc-free-bytes`, `svc-usable-bytes`, `svc-inodes`,
 * `svc-inode-limit`, `svc-offset`, `svc-address` and `svc-retry-after-ms`.
 */
export function trailersOf(error: GroveError): Record<string, string> {
  const trailers: Record<string, string> = { [REASON_TRAILER]: error.code };
  for (const [trailer, key] of TRAILERS) {
    const value = error.metadata[key];
    // A header holds printable ASCII only; anything else still reaches the client in the details.
    if (value !== undefined && /^[\x21-\x7e]{1,256}$/.test(value)) trailers[trailer] = value;
  }
  return trailers;
}

/** The error code of a server's reason; undefined for one that this version does not know. */
export function errorCodeOf(reason: string | undefined): ErrorCode | undefined {
  return ERROR_CODES.find((code) => code === reason);
}
