// The failures of the client itself, beside a server's refusals, with a closed list of codes.
import { type ErrorCode, GroveError, isGroveError } from "#base/errors.ts";

/** Every way in which the client itself fails. */
export const CLIENT_ERROR_CODES = [
  "USAGE",
  "CANCELLED",
  "NETWORK",
  "SIGN_IN_NEEDED",
  "SIGN_IN_FAILED",
  "LOCAL_FILE",
  "LOCAL_NOT_FOUND",
  "LOCAL_DENIED",
  "SOURCE_FAILED",
  "SERVER_BROKEN",
  "SERVER_DENIED",
  "SERVER_LIMIT",
  "SERVER_UNTRUSTED",
] as const;

/** One way in which the client itself fails. */
export type ClientErrorCode = (typeof CLIENT_ERROR_CODES)[number];

/** Options of a ClientError beside code and message. */
export interface ClientErrorOptions {
  /** The file or address that it is about, as its user knows it: it stands before the message. */
  readonly about?: string;
  /** A sentence with the action to take; the code's own otherwise. */
  readonly todo?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** A failure of the client: the message says what happened, `todo` what to do. Never holds a secret. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly code: ClientErrorCode;
  readonly about: string | undefined;
  readonly todo: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;

  constructor(code: ClientErrorCode, message: string, options: ClientErrorOptions = {}) {
    const { about, cause } = options;
    super(
      about === undefined ? message : `${about}: ${message}`,
      cause === undefined ? undefined : { cause },
    );
    this.code = code;
    this.about = about;
    this.todo = options.todo;
    this.metadata = options.metadata ?? {};
  }
}

/** A server was lost within what must not be done twice: it may have done it, or not. */
export class UnknownOutcome extends ClientError {
  constructor(lost: ClientError) {
    super(lost.code, `${lost.message}; it may have done this, or not`, {
      todo: "Look whether it was done before you try again.",
      cause: lost,
    });
  }
}

/** A server's refusal with the command's own hint, which is better than the refusal's. */
export class HintedRefusal extends GroveError {
  readonly todo: string;

  constructor(refusal: GroveError, todo: string) {
    super(refusal.code, refusal.message, { metadata: refusal.metadata, cause: refusal });
    this.todo = todo;
  }
}

/** Catches a call's failure: one of that code gets the command's own hint. */
export function withHint(code: ErrorCode, todo: string): (error: unknown) => never {
  return (error) => {
    throw isGroveError(error, code) ? new HintedRefusal(error, todo) : error;
  };
}

/** Codes that mean the server's failure in a reply and this machine's in a local error. */
const EITHER_SIDE: readonly ErrorCode[] = [
  "STORAGE_FAILED",
  "STORE_UNAVAILABLE",
  "OVERLOADED",
  "STARTING",
  "CORRUPT",
];
const CAUSES_MAX = 8;

/** True when such a failure came from this machine: a disk, a lock or a process. */
export function isLocalFailure(error: unknown): error is GroveError {
  if (!isGroveError(error, ...EITHER_SIDE)) return false;
  let cause: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    // By name, since the room grpc is loaded on the first call only.
    if (cause.name === "StatusError") return false;
    ({ cause } = cause);
  }
  return true;
}

/** True for a ClientError with one of the given codes (any code when none is given). */
export function isClientError(error: unknown, ...codes: readonly ClientErrorCode[]): error is ClientError {
  return error instanceof ClientError && (codes.length === 0 || codes.includes(error.code));
}

/** True when no space was left on this machine's disk, or for this user there. */
export function isFullDisk(error: unknown): boolean {
  return (
    isClientError(error, "LOCAL_FILE") && isNoSpace((error.cause as NodeJS.ErrnoException | undefined)?.code)
  );
}

function isNoSpace(code: string | undefined): boolean {
  return code === "ENOSPC" || code === "EDQUOT";
}

/** The system's error about a path of this machine as a ClientError; other errors unchanged. */
export function inWords(error: unknown): unknown {
  const { path, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  return path === undefined || syscall === undefined ? error : localFailure(error, path);
}

/** A failed call to the local file system as a ClientError with the path; other errors unchanged. */
export function localFailure(error: unknown, path: string): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (!(error instanceof Error) || error instanceof ClientError || code === undefined) return error;
  const make = (kind: ClientErrorCode, what: string, todo?: string): ClientError =>
    new ClientError(kind, what, { about: path, cause: error, ...(todo === undefined ? {} : { todo }) });
  switch (code) {
    case "ENOENT":
      return make("LOCAL_NOT_FOUND", "there is no such file or folder on this machine");
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return make("LOCAL_DENIED", "this machine does not let you do that");
    case "ENOSPC":
    case "EDQUOT":
      return make("LOCAL_FILE", "no space is left on this machine's disk", "Free some space and try again.");
    case "EEXIST":
      return make("LOCAL_FILE", "is there already", "Name another file, or move it away first.");
    case "EISDIR":
      return make("LOCAL_FILE", "is a folder", "Add -r for a folder, or name a file.");
    case "ENOTDIR":
      return make("LOCAL_FILE", "is not a folder, or goes through something that is none");
    case "ELOOP":
      return make("LOCAL_FILE", "is a symbolic link, which is not followed here");
    case "ENAMETOOLONG":
      return make("LOCAL_FILE", "the name is too long for this machine");
    default:
      return code.startsWith("E") && (error as NodeJS.ErrnoException).syscall !== undefined
        ? make("LOCAL_FILE", `${(error as NodeJS.ErrnoException).syscall} failed (${code})`)
        : error;
  }
}
