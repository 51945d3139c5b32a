// The table from refusals to WebDAV's statuses and precondition elements.
import { type ErrorCode, isGroveError } from "#base/errors.ts";

/** Status of an answer, and the element of its error body where RFC 4918 or RFC 4331 names one. */
export interface DavStatus {
  readonly status: number;
  readonly element?: string;
}

const UNAVAILABLE: DavStatus = { status: 503 };
const UNAUTHORIZED: DavStatus = { status: 401 };
const FORBIDDEN: DavStatus = { status: 403 };
const BAD_REQUEST: DavStatus = { status: 400 };
const CONFLICT: DavStatus = { status: 409 };
const BROKEN: DavStatus = { status: 500 };

/** Every refusal's status at /dav/. */
export const DAV_STATUS: Readonly<Record<ErrorCode, DavStatus>> = {
  QUOTA_EXCEEDED: { status: 507, element: "quota-not-exceeded" },
  INODE_LIMIT: { status: 507, element: "quota-not-exceeded" },
  DISK_RESERVE: { status: 507, element: "sufficient-disk-space" },
  RATE_LIMITED: { status: 429 },
  SESSION_MISSING: UNAUTHORIZED,
  SESSION_UNKNOWN: UNAUTHORIZED,
  SESSION_IDLE: UNAUTHORIZED,
  SESSION_EXPIRED: UNAUTHORIZED,
  SESSION_EVICTED: UNAUTHORIZED,
  SESSION_TABLE_FULL: UNAVAILABLE,
  IP_MISMATCH: UNAUTHORIZED,
  NOT_OWNER: FORBIDDEN,
  NOT_SHARED: FORBIDDEN,
  NOT_ADMIN: FORBIDDEN,
  USER_DISABLED: FORBIDDEN,
  NO_SUCH_PATH: { status: 404 },
  PATH_EXISTS: { status: 412 },
  NOT_EMPTY: CONFLICT,
  IS_DIRECTORY: { status: 405 },
  NOT_DIRECTORY: CONFLICT,
  ETAG_MISMATCH: { status: 412 },
  LOCKED: { status: 423, element: "lock-token-submitted" },
  NO_SUCH_LOCK: { status: 409, element: "lock-token-matches-request-uri" },
  SHARE_LIMIT: CONFLICT,
  BAD_NAME: BAD_REQUEST,
  BAD_ARGUMENT: BAD_REQUEST,
  OFFSET_MISMATCH: CONFLICT,
  NO_SUCH_UPLOAD: CONFLICT,
  TOO_MANY_UPLOADS: { status: 429 },
  UPLOAD_TAKEN_OVER: CONFLICT,
  CHECKSUM_MISMATCH: BAD_REQUEST,
  CORRUPT: BROKEN,
  WRONG_NODE: UNAVAILABLE,
  ROOT_LOST: UNAVAILABLE,
  NODE_DRAINING: UNAVAILABLE,
  STARTING: UNAVAILABLE,
  IDP_UNAVAILABLE: UNAVAILABLE,
  CLIENT_ID_UNSET: UNAVAILABLE,
  TOKEN_REJECTED: UNAUTHORIZED,
  MOCK_TOKEN: UNAUTHORIZED,
  CLIENT_CERT_REQUIRED: UNAVAILABLE,
  NODE_ID_HELD: UNAVAILABLE,
  FENCED: UNAVAILABLE,
  CLUSTER_MISMATCH: UNAVAILABLE,
  VERSION_MISMATCH: UNAVAILABLE,
  STORAGE_FAILED: UNAVAILABLE,
  DATA_IN_USE: UNAVAILABLE,
  STORE_UNAVAILABLE: UNAVAILABLE,
  OVERLOADED: UNAVAILABLE,
  NOT_IMPLEMENTED: { status: 501 },
  INTERNAL: BROKEN,
};

/** An answer that stands for no refusal of the product: a status and, where one is named, an element. */
export class DavRefusal extends Error {
  override readonly name = "DavRefusal";
  readonly status: number;
  readonly element: string | undefined;

  constructor(status: number, message: string, element?: string) {
    super(message);
    this.status = status;
    this.element = element;
  }
}

/** The status that a refusal has at /dav/; undefined for any other error. */
export function statusOf(error: unknown): number | undefined {
  if (error instanceof DavRefusal) return error.status;
  return isGroveError(error) ? DAV_STATUS[error.code].status : undefined;
}

/** Seconds after which a client that met a pause may ask again, where the refusal does not say. */
const RETRY_SECONDS = 5;

/** Headers by which a client knows what to do after a refusal: sign in (RFC 9110, section 11.6.1), or wait. */
export function refusalHeaders(status: number, error: unknown): Readonly<Record<string, string | number>> {
  if (status === 401) return { "www-authenticate": 'Basic realm="Grove", charset="UTF-8"' };
  return retryHeaders(status, error);
}

/** The one that says how long to wait; none where waiting changes nothing. */
export function retryHeaders(status: number, error: unknown): Readonly<Record<string, number>> {
  if (status !== 429 && status !== 503) return {};
  const waitMs = isGroveError(error) ? Number(error.metadata["retry_after_ms"]) : 0;
  return { "retry-after": waitMs > 0 ? Math.ceil(waitMs / 1_000) : RETRY_SECONDS };
}
