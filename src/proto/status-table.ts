// The one table from Grove's refusals to gRPC: a status code each, the error details, and the plain trailers (decision D1).
import { ERROR_CODES, type ErrorCode, type ErrorMetadata, type GroveError } from "#base/errors.ts";

/** The `domain` of every ErrorInfo that Grove sends (decision D1). */
export const ERROR_DOMAIN = "grove";

/** The trailer that carries the reason, which is the error code's name (decision D1). */
export const REASON_TRAILER = "svc-reason";

/** The codes of gRPC that Grove answers with; the room grpc is beside this one, so they are repeated here as data. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const FAILED_PRECONDITION = 9;
const ABORTED = 10;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;
const UNAVAILABLE = 14;
const DATA_LOSS = 15;
const UNAUTHENTICATED = 16;

const GRPC_CODES: Readonly<Record<ErrorCode, number>> = {
  QUOTA_EXCEEDED: RESOURCE_EXHAUSTED,
  INODE_LIMIT: RESOURCE_EXHAUSTED,
  DISK_RESERVE: RESOURCE_EXHAUSTED,
  RATE_LIMITED: RESOURCE_EXHAUSTED,
  SESSION_MISSING: UNAUTHENTICATED,
  SESSION_UNKNOWN: UNAUTHENTICATED,
  SESSION_IDLE: UNAUTHENTICATED,
  SESSION_EXPIRED: UNAUTHENTICATED,
  SESSION_EVICTED: UNAUTHENTICATED,
  SESSION_TABLE_FULL: RESOURCE_EXHAUSTED,
  IP_MISMATCH: PERMISSION_DENIED,
  NOT_OWNER: PERMISSION_DENIED,
  NOT_SHARED: PERMISSION_DENIED,
  NOT_ADMIN: PERMISSION_DENIED,
  USER_DISABLED: PERMISSION_DENIED,
  NO_SUCH_PATH: NOT_FOUND,
  PATH_EXISTS: ALREADY_EXISTS,
  NOT_EMPTY: FAILED_PRECONDITION,
  IS_DIRECTORY: FAILED_PRECONDITION,
  NOT_DIRECTORY: FAILED_PRECONDITION,
  ETAG_MISMATCH: FAILED_PRECONDITION,
  SHARE_LIMIT: FAILED_PRECONDITION,
  BAD_NAME: INVALID_ARGUMENT,
  BAD_ARGUMENT: INVALID_ARGUMENT,
  OFFSET_MISMATCH: ABORTED,
  NO_SUCH_UPLOAD: NOT_FOUND,
  TOO_MANY_UPLOADS: RESOURCE_EXHAUSTED,
  UPLOAD_TAKEN_OVER: ABORTED,
  CHECKSUM_MISMATCH: ABORTED,
  CORRUPT: DATA_LOSS,
  WRONG_NODE: FAILED_PRECONDITION,
  ROOT_LOST: DATA_LOSS,
  NODE_DRAINING: UNAVAILABLE,
  STARTING: UNAVAILABLE,
  IDP_UNAVAILABLE: UNAVAILABLE,
  CLIENT_ID_UNSET: FAILED_PRECONDITION,
  TOKEN_REJECTED: UNAUTHENTICATED,
  MOCK_TOKEN: UNAUTHENTICATED,
  CLIENT_CERT_REQUIRED: UNAUTHENTICATED,
  NODE_ID_HELD: ALREADY_EXISTS,
  FENCED: FAILED_PRECONDITION,
  CLUSTER_MISMATCH: FAILED_PRECONDITION,
  STORAGE_FAILED: UNAVAILABLE,
  DATA_IN_USE: UNAVAILABLE,
  STORE_UNAVAILABLE: UNAVAILABLE,
  OVERLOADED: UNAVAILABLE,
  NOT_IMPLEMENTED: UNIMPLEMENTED,
  INTERNAL: INTERNAL,
};

/** Trailers for clients that read no protobuf details, each with the metadata key whose number or name it repeats. */
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

/** What google.rpc.ErrorInfo says of a refusal (decision D1). */
export interface ErrorFacts {
  readonly reason: ErrorCode;
  readonly domain: string;
  readonly metadata: ErrorMetadata;
}

/** The number of the gRPC status that a refusal answers (decision D1); a new code without a row does not compile. */
export function grpcCodeOf(code: ErrorCode): number {
  return GRPC_CODES[code];
}

/** The fields of the refusal's google.rpc.ErrorInfo (decision D1). */
export function errorDetailsOf(error: GroveError): ErrorFacts {
  return { reason: error.code, domain: ERROR_DOMAIN, metadata: error.metadata };
}

/**
 * The same as plain ASCII trailers (decision D1): `svc-reason`, and those of `svc-used-bytes`, `svc-quota-bytes`, `svc-free-bytes`,
 * `svc-usable-bytes`, `svc-inodes`, `svc-inode-limit`, `svc-offset`, `svc-address`, `svc-retry-after-ms` whose metadata key the refusal carries.
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

/** The error code that a reason from a server names; undefined for one that this version does not know. */
export function errorCodeOf(reason: string | undefined): ErrorCode | undefined {
  return ERROR_CODES.find((code) => code === reason);
}
