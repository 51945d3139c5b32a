// How the writer of the shared engine refuses what it cannot do.
import { GroveError, isGroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { diskFull, isDatabaseFull } from "#storage/metadata/sqlite-errors.ts";

/** The refusal of changes once the process ends. */
export function closed(): GroveError {
  return unavailable("this node is ending");
}

/** The refusal of a root that does not exist. */
export function noRoot(): GroveError {
  return new GroveError("NO_SUCH_PATH", "there is no such root on this node");
}

/** The refusal of a change of a root that another process holds by now. */
export function heldElsewhere(): GroveError {
  return new GroveError("WRONG_NODE", "another node serves this root now");
}

/** The refusal while the database does not answer, or for a reason in words. */
export function unavailable(error: unknown): GroveError {
  const text = typeof error === "string" ? error : "the shared database does not answer; try again";
  return new GroveError("STORE_UNAVAILABLE", text, typeof error === "string" ? {} : { cause: error });
}

/** What an ask of the database was refused with; any other failure is that the database does not answer. */
export function refusalOrOutage(error: unknown): GroveError {
  return isGroveError(error) ? error : unavailable(error);
}

/** The refusal of changes that were given up, by what went wrong. */
export function failureOf(error: unknown): Error {
  if (isGroveError(error)) return error;
  return isDatabaseFull(error) ? diskFull(error) : internal(error);
}

/** The refusal of a change that failed by itself. */
export function internal(error: unknown): GroveError {
  return new GroveError(
    "INTERNAL",
    `a change failed: ${typeof error === "string" ? error : errorText(error)}`,
  );
}
