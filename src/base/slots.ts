// A bag of short-lived objects that leaves no copies of itself behind, as V8's sets and maps do.

/**
 * Objects at numbered places. V8 copies a Set after some deletions and does not clear the old copy. Once that
 * has reached the old generation, its members follow it there with all that they refer to, although nearly
 * all have ended. Here places are overwritten. Members may come and go during a walk.
 */
export class Slots<T extends object> {
  readonly #places: (T | undefined)[] = [];
  readonly #free: number[] = [];

  /** Number of members. */
  get size(): number {
    return this.#places.length - this.#free.length;
  }

  /** Adds a member; returns its place. */
  add(member: T): number {
    const place = this.#free.pop() ?? this.#places.length;
    this.#places[place] = member;
    return place;
  }

  /** The member at a place. */
  at(place: number): T | undefined {
    return this.#places[place];
  }

  /** Empties a place. The caller removes each member once. */
  remove(place: number): void {
    this.#places[place] = undefined;
    this.#free.push(place);
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (const member of this.#places) if (member !== undefined) yield member;
  }
}
