// The reason of a MetaServer's refusal, if it gave one.
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { StatusError } from "#wire/framing/status.ts";
import { errorCodeOf, REASON_TRAILER } from "#wire/proto/status-table.ts";

/** The code behind a failed call; undefined for a call without an answer from Grove. */
export function reasonOf(error: unknown): ErrorCode | undefined {
  if (isGroveError(error)) return error.code;
  return error instanceof StatusError ? errorCodeOf(error.metadata.get(REASON_TRAILER)) : undefined;
}
