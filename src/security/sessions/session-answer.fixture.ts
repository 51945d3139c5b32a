// What a call on the table of sessions comes to, as a word that compares.
import { isGroveError } from "#base/errors.ts";

/** "ok", or the code of its refusal. Throws what is no refusal. */
export function answerOf(act: () => unknown): string {
  try {
    act();
    return "ok";
  } catch (error) {
    if (isGroveError(error)) return error.code;
    throw error;
  }
}
