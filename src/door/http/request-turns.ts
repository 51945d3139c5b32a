// Bounds what connections of HTTP/1.1 bring that send many requests at once: in a turn of the event loop, and unanswered.
import type { Socket } from "node:net";
import { readingOf } from "#os/socket-reading.ts";
import { DOOR_REQUESTS_PER_TURN, DOOR_REQUESTS_UNANSWERED } from "./door-limits.ts";

/**
 * libuv reads a ready socket up to 32 times (two megabytes) before any other, and Node hands over each request in
 * these bytes at once: ten thousand refusals, before which nobody else is heard. A connection is read no further
 * in a turn in which it has brought some requests, and while many of its requests wait for those before them: each
 * of a hundred bytes holds kilobytes of memory.
 */
export class RequestTurns {
  readonly #brought = new Map<Socket, number>();
  readonly #unanswered = new WeakMap<Socket, number>();
  #held: Socket[] = [];

  /** Counts a request, and returns how many the connection has brought in this turn. */
  took(socket: Socket): number {
    if (this.#brought.size === 0) setImmediate(() => this.#next());
    const count = (this.#brought.get(socket) ?? 0) + 1;
    this.#brought.set(socket, count);
    const unanswered = this.#add(socket, 1);
    if (count === DOOR_REQUESTS_PER_TURN || unanswered === DOOR_REQUESTS_UNANSWERED)
      readingOf(socket).pause();
    if (count === DOOR_REQUESTS_PER_TURN) this.#held.push(socket);
    return count;
  }

  /** Counts an answer, complete or not. */
  answered(socket: Socket): void {
    const unanswered = this.#add(socket, -1);
    const isHeld = (this.#brought.get(socket) ?? 0) >= DOOR_REQUESTS_PER_TURN;
    if (unanswered === DOOR_REQUESTS_UNANSWERED - 1 && !isHeld) readOn(socket);
  }

  #add(socket: Socket, requests: 1 | -1): number {
    const unanswered = (this.#unanswered.get(socket) ?? 0) + requests;
    this.#unanswered.set(socket, unanswered);
    return unanswered;
  }

  #next(): void {
    const held = this.#held;
    this.#held = [];
    this.#brought.clear();
    for (const socket of held) {
      if ((this.#unanswered.get(socket) ?? 0) < DOOR_REQUESTS_UNANSWERED) readOn(socket);
    }
  }
}

/** Not where Node waits for the client to take answers: its parser stands still then, and calls what comes broken. */
function readOn(socket: Socket): void {
  if (!socket.isPaused()) readingOf(socket).resume();
}
