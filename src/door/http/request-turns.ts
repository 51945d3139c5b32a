// Divides the turns of the event loop among connections of HTTP/1.1 that send many requests at once.
import type { Socket } from "node:net";
import { readingOf } from "#os/socket-reading.ts";
import { DOOR_REQUESTS_PER_TURN } from "./door-limits.ts";

/**
 * libuv reads a ready socket up to 32 times (two megabytes) before any other, and Node hands over each request in
 * these bytes at once: ten thousand refusals, before which nobody else is heard. A connection is read no further
 * in a turn in which it has brought some requests.
 */
export class RequestTurns {
  readonly #brought = new Map<Socket, number>();
  #held: Socket[] = [];

  /** Counts a request, and returns how many the connection has brought in this turn. */
  took(socket: Socket): number {
    if (this.#brought.size === 0) setImmediate(() => this.#next());
    const count = (this.#brought.get(socket) ?? 0) + 1;
    this.#brought.set(socket, count);
    if (count === DOOR_REQUESTS_PER_TURN) {
      readingOf(socket).pause();
      this.#held.push(socket);
    }
    return count;
  }

  #next(): void {
    const held = this.#held;
    this.#held = [];
    this.#brought.clear();
    for (const socket of held) readingOf(socket).resume();
  }
}
