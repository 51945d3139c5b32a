// Decides which failures show their request's id: those that an operator looks up in a server's log.
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { ClientError } from "#client/terminal/client-error.ts";

/** Refusals that mean a failure of the server. */
const UNEXPECTED: readonly ErrorCode[] = [
  "INTERNAL",
  "STORAGE_FAILED",
  "CORRUPT",
  "OVERLOADED",
  "STORE_UNAVAILABLE",
];

/** The id of the failed request, if a server sent one. */
export function requestIdOf(error: unknown): string | undefined {
  return error instanceof GroveError || error instanceof ClientError
    ? error.metadata["request_id"]
    : undefined;
}

/** True for a failure that a user cannot explain without the server's log. */
export function isUnexpected(error: unknown): boolean {
  if (error instanceof GroveError) return UNEXPECTED.includes(error.code);
  return error instanceof ClientError && error.code === "SERVER_BROKEN";
}
