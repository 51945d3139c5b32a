// Divides the turns of the event loop among connections of HTTP/2 that open many streams at once.
import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { DOOR_REQUESTS_PER_TURN } from "./door-limits.ts";

interface Waiting {
  readonly stream: ServerHttp2Stream;
  readonly begin: () => void;
}

interface Lane {
  /** Streams that have begun in this turn. */
  begun: number;
  /** As many as a client may open and reset at once. */
  waiting: Waiting[];
}

/**
 * One read of a connection brings hundreds of streams, each with its reset behind it. Some begin at once and the
 * rest in later turns, so that others are heard in between and what is left by then costs nothing.
 */
export class StreamTurns {
  readonly #lanes = new Map<Http2Session | undefined, Lane>();

  /** Begins a stream's request in this turn or a later one; never where it has ended by then. */
  take(stream: ServerHttp2Stream, begin: () => void): void {
    if (this.#lanes.size === 0) setImmediate(this.#next);
    const { session } = stream;
    const lane = this.#lanes.get(session) ?? { begun: 0, waiting: [] };
    this.#lanes.set(session, lane);
    if (lane.begun < DOOR_REQUESTS_PER_TURN) {
      lane.begun++;
      begin();
    } else lane.waiting.push({ stream, begin });
  }

  readonly #next = (): void => {
    for (const [session, lane] of this.#lanes) {
      lane.waiting = lane.waiting.filter(({ stream }) => !stream.closed);
      if (lane.waiting.length === 0) {
        this.#lanes.delete(session);
        continue;
      }
      const ready = lane.waiting.splice(0, DOOR_REQUESTS_PER_TURN);
      lane.begun = ready.length;
      for (const { begin } of ready) begin();
    }
    if (this.#lanes.size > 0) setImmediate(this.#next);
  };
}
