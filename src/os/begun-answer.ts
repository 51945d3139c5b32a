// Tells whether a connection of HTTP/1.1 is in the middle of an answer.
import type { Socket } from "node:net";

/** True where a part of an answer has left: the refusal of what came behind it would stand among its bytes. */
export function isWithinAnswer(socket: Socket): boolean {
  const answer: unknown = Reflect.get(socket, "_httpMessage");
  return typeof answer === "object" && answer !== null && Reflect.get(answer, "headersSent") === true;
}
