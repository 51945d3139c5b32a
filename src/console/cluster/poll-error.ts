// The error of a failed poll, in words for operators.

/** A failed poll. The message never quotes what the node sent. */
export class PollError extends Error {
  override readonly name = "PollError";
}
