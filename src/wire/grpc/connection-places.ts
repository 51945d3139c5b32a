// The places of one connection: so many of its calls run at once, those above that wait for one of them to go.
import type { ServerHttp2Stream } from "node:http2";

interface Waiting {
  readonly begin: () => void;
  readonly dropped: () => void;
}

/**
 * Bounds the calls of a connection where HTTP/2 alone cannot. Node counts a stream that its client has given up until the turn of the
 * event loop is over, and refuses with ENHANCE_YOUR_CALM what the client opens in its stead by the same write. So clients are told of
 * twice as many streams as there are places, and whoever keeps to the number of places may give all of them up at once.
 */
export class ConnectionPlaces {
  readonly #places: number;
  /** First come, first served; bounded by the streams that the client may open. */
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

  /** Bytes that have come for them. */
  get unreadBytes(): number {
    let bytes = 0;
    for (const stream of this.#waiting.keys()) bytes += stream.readableLength;
    return bytes;
  }

  /** Begins the call of a stream when there is a place, which it has until it closes; `dropped` is called when it closes before. */
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
