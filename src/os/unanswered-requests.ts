// Ends connections of HTTP/1.1 that send many requests without waiting for answers, as no honest program does.
import type { IncomingMessage, ServerResponse } from "node:http";

/** Requests of one connection without an answer: each takes memory, and all of one read come before anybody else. */
export const REQUESTS_UNANSWERED = 4;

/** The requests of a server's connections that have no answer. */
export class UnansweredRequests {
  readonly #counts = new WeakMap<IncomingMessage["socket"], number>();

  /** Counts a request until its answer has ended; false, with the end of its connection, for one too many. */
  take({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const count = this.#counts.get(socket) ?? 0;
    if (count >= REQUESTS_UNANSWERED) {
      socket.destroy();
      return false;
    }
    this.#counts.set(socket, count + 1);
    response.once("close", () => this.#counts.set(socket, (this.#counts.get(socket) ?? 1) - 1));
    return true;
  }
}
