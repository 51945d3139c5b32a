// The places of one connection: a maximum of its calls run at once, and further ones wait.
import type { ServerHttp2Stream } from "node:http2";

interface Waiting {
  readonly begin: () => void;
  readonly dropped: () => void;
}

/**
 * Bounds the calls of a connection where HTTP/2 alone cannot. Node counts an abandoned stream until the turn
 * of the event loop ends, and refuses its replacement in the same write with ENHANCE_YOUR_CALM. Clients may
 * therefore open twice as many streams as there are places. A client that uses only the places may give all
 * of them up at once.
 */
export class ConnectionPlaces {
  readonly #places: number;
  /** In order of arrival; bounded by the streams that the client may open. */
  readonly #waiting = new Map<ServerHttp2Stream, Waiting>();
  #taken = 0;

  constructor(places: number) {
    this.#places = places;
  }

  /** True when one more stream would have to wait. */
  get isFull(): boolean {
    return this.#taken >= this.#places;
  }

  /** Streams that wait for a place. */
  get waitingCount(): number {
    return this.#waiting.size;
  }

  /** Bytes that have arrived for waiting streams. */
  get unreadBytes(): number {
    let bytes = 0;
    for (const stream of this.#waiting.keys()) bytes += stream.readableLength;
    return bytes;
  }

  /**
   * Begins a stream's call in a place that it holds until its close; `dropped` is called for a close before.
   */
  take(stream: ServerHttp2Stream, begin: () => void, dropped: () => void): void {
    if (this.isFull) {
      this.#waiting.set(stream, { begin, dropped });
    } else {
      this.#taken++;
      begin();
    }
    stream.once("close", () => this.#closed(stream));
  }

  #closed(stream: ServerHttp2Stream): void {
    const waiting = this.#waiting.get(stream);
    if (waiting !== undefined) {
      this.#waiting.delete(stream);
      waiting.dropped();
      return;
    }
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#taken--;
      return;
    }
    this.#waiting.delete(next[0]);
    next[1].begin();
  }
}
