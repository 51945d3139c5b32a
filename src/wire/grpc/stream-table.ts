// Replaces the table of open streams in a session of node:http2, whose old copies keep ended streams alive.
import type { Http2Session } from "node:http2";
import { isMap } from "node:util/types";
import { Slots } from "#base/slots.ts";

/**
 * Streams by their ids, with what node:http2 asks of its Map. That Map is copied again and again, as `Slots`
 * describes, and nearly every stream ended in the old generation. This table copies numbers alone.
 */
export class StreamTable {
  readonly #places = new Map<number, number>();
  readonly #streams = new Slots<object>();

  get size(): number {
    return this.#places.size;
  }

  get(id: number): object | undefined {
    const place = this.#places.get(id);
    return place === undefined ? undefined : this.#streams.at(place);
  }

  set(id: number, stream: object): this {
    this.delete(id);
    this.#places.set(id, this.#streams.add(stream));
    return this;
  }

  delete(id: number): boolean {
    const place = this.#places.get(id);
    if (place === undefined) return false;
    this.#places.delete(id);
    this.#streams.remove(place);
    return true;
  }

  forEach(each: (stream: object, id: number) => void): void {
    for (const id of this.#places.keys()) {
      const stream = this.get(id);
      if (stream !== undefined) each(stream, id);
    }
  }
}

/** Gives a new session such a table. Leaves one alone that has streams, or looks otherwise than in Node 26. */
export function useStreamTable(session: Http2Session): void {
  const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === "state");
  const state: unknown = symbol === undefined ? undefined : Reflect.get(session, symbol);
  if (typeof state !== "object" || state === null || !("streams" in state)) return;
  // Node's own kind of Map inherits nothing, not even its size.
  const { streams } = state;
  if (isMap(streams) && Reflect.get(Map.prototype, "size", streams) === 0) state.streams = new StreamTable();
}
