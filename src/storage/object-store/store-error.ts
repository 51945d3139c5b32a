// What an object store answered instead of success, in words without secrets.
import { GroveError } from "#base/errors.ts";

/**
 * Why a request failed. `unreachable`: no whole answer came, so that it may have had an effect. `busy`: the
 * store asks to come again. `taken`: a conditional PUT found an object. `damaged`: bytes changed on the way.
 */
export type StoreProblem =
  | "unreachable"
  | "busy"
  | "missing"
  | "taken"
  | "denied"
  | "damaged"
  | "closed"
  | "refused";

/** Problems that another try may not meet. */
const PASSING: readonly StoreProblem[] = ["unreachable", "busy", "damaged"];
/** Codes of errors that S3 and its kin send with any status. */
const BUSY_CODES: readonly string[] = [
  "SlowDown",
  "SlowDownRead",
  "SlowDownWrite",
  "ServiceUnavailable",
  "InternalError",
  "OperationAborted",
  "ConditionalRequestConflict",
  "RequestTimeout",
  "ThrottlingException",
  "TooManyRequests",
];
const DAMAGED_CODES: readonly string[] = [
  "BadDigest",
  // Garage's word for it; a checksum of ours is never malformed.
  "InvalidDigest",
  "IncompleteBody",
  "XAmzContentChecksumMismatch",
  "ChecksumMismatch",
];
const CODE = /^[A-Za-z0-9.]{1,64}$/;

/** A failed request. It names the operation and the store's own code, never a header, key or secret. */
export class StoreError extends GroveError {
  readonly problem: StoreProblem;
  /** The store's own code, such as NoSuchBucket; empty where it sent none. */
  readonly storeCode: string;

  constructor(problem: StoreProblem, message: string, options: { storeCode?: string; cause?: unknown } = {}) {
    super("STORE_UNAVAILABLE", message, "cause" in options ? { cause: options.cause } : {});
    this.problem = problem;
    this.storeCode = options.storeCode ?? "";
  }

  /** True when the same request may succeed later. */
  get mayPass(): boolean {
    return PASSING.includes(this.problem);
  }
}

/** True for a StoreError with one of these problems. */
export function isStoreProblem(error: unknown, ...problems: readonly StoreProblem[]): error is StoreError {
  return error instanceof StoreError && problems.includes(error.problem);
}

/** The error of an answer that is no success. `code` comes from its body, `operation` is such as "PUT". */
export function refusedBy(operation: string, status: number, code: string): StoreError {
  const known = CODE.test(code) ? code : "";
  const said = known === "" ? `${status}` : `${status} ${known}`;
  return new StoreError(problemOf(status, known), `the object store answered ${said} to ${operation}`, {
    storeCode: known,
  });
}

function problemOf(status: number, code: string): StoreProblem {
  if (code === "NoSuchBucket") return "refused";
  if (BUSY_CODES.includes(code)) return "busy";
  if (DAMAGED_CODES.includes(code)) return "damaged";
  // Where the bucket is away, or a proxy has lost its store, nothing is known of the object.
  if (status === 404) return code === "NoSuchKey" ? "missing" : "busy";
  if (status === 412) return "taken";
  if (status === 401 || status === 403) return "denied";
  return status === 408 || status === 409 || status === 429 || (status >= 500 && status !== 501)
    ? "busy"
    : "refused";
}
