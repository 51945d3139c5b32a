// The reason that the MetaServer gave for a refusal, as far as it gave one.
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { StatusError } from "#wire/framing/status.ts";
import { errorCodeOf, REASON_TRAILER } from "#wire/proto/status-table.ts";

/** The code behind a failed call; undefined where the call got no answer of Grove's. */
export function reasonOf(error: unknown): ErrorCode | undefined {
  if (isGroveError(error)) return error.code;
  return error instanceof StatusError ? errorCodeOf(error.metadata.get(REASON_TRAILER)) : undefined;
}
