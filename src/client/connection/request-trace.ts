// Which failures are told with the id of their request: those that an operator has to look for in a server's log.
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { ClientError } from "#client/terminal/client-error.ts";

/** Refusals that are no answer to what was asked but a failure of the server. */
const UNEXPECTED: readonly ErrorCode[] = [
  "INTERNAL",
  "STORAGE_FAILED",
  "CORRUPT",
  "OVERLOADED",
  "STORE_UNAVAILABLE",
];

/** The id of the request that failed, as far as a server told one. */
export function requestIdOf(error: unknown): string | undefined {
  return error instanceof GroveError || error instanceof ClientError
    ? error.metadata["request_id"]
    : undefined;
}

/** True for a failure that nobody who types a command can explain by themselves. */
export function isUnexpected(error: unknown): boolean {
  if (error instanceof GroveError) return UNEXPECTED.includes(error.code);
  return error instanceof ClientError && error.code === "SERVER_BROKEN";
}
