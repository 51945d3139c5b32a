// Why a poll of a node counts as no answer, in words for operators.

/** What a node sent, or did not send, is no answer. The message never quotes what the node sent. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}
