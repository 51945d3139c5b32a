// The outcome of a call on the session table, as a comparable word.
import { isGroveError } from "#base/errors.ts";

/** "ok", or the code of its refusal. Rethrows other errors. */
export function answerOf(act: () => unknown): string {
  try {
    act();
    return "ok";
  } catch (error) {
    if (isGroveError(error)) return error.code;
    throw error;
  }
}
