// The refusal of a network from which too much has come: until when, in words and for programs.
import { GroveError } from "#base/errors.ts";

/** RATE_LIMITED; `what` names what came too often, such as "wrong passwords". */
export function tooManyFromNetwork(what: string, waitMs: number): GroveError {
  return new GroveError(
    "RATE_LIMITED",
    `too many ${what} came from your network: try again in ${Math.ceil(waitMs / 60_000)} min`,
    { metadata: { retry_after_ms: String(waitMs) } },
  );
}
