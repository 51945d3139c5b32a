// A node's users with one value each, where maps of the same users share their names.

/** Names in the node's order, and the position of each. */
interface Roster {
  readonly names: readonly string[];
  readonly places: ReadonlyMap<string, number>;
}

/** An immutable map of users to values. */
export class UserValues<V> implements ReadonlyMap<string, V> {
  readonly #roster: Roster;
  readonly #values: readonly V[];

  private constructor(roster: Roster, values: readonly V[]) {
    this.#roster = roster;
    this.#values = values;
  }

  /** Makes a map; it shares names with the first of `others` that lists the same ones in order. */
  static of<V>(
    entries: ReadonlyMap<string, V>,
    others: readonly (UserValues<unknown> | undefined)[] = [],
  ): UserValues<V> {
    const names = [...entries.keys()];
    const alike = others.find((other) => other !== undefined && isSame(other.names, names));
    const roster = alike === undefined ? { names, places: placesOf(names) } : alike.#roster;
    return new UserValues(roster, [...entries.values()]);
  }

  /** All names, in order. */
  get names(): readonly string[] {
    return this.#roster.names;
  }

  get size(): number {
    return this.#values.length;
  }

  has(name: string): boolean {
    return this.#roster.places.has(name);
  }

  get(name: string): V | undefined {
    const place = this.#roster.places.get(name);
    return place === undefined ? undefined : this.#values[place];
  }

  /** The same users, some of them with other values. */
  with(changed: ReadonlyMap<string, V>): UserValues<V> {
    const values = this.#values.slice();
    for (const [name, value] of changed) {
      const place = this.#roster.places.get(name);
      if (place !== undefined) values[place] = value;
    }
    return new UserValues(this.#roster, values);
  }

  forEach(take: (value: V, name: string, map: ReadonlyMap<string, V>) => void): void {
    const { names } = this.#roster;
    for (let place = 0; place < names.length; place++) {
      take(this.#values[place] as V, names[place] as string, this);
    }
  }

  *entries(): Generator<[string, V], undefined> {
    const { names } = this.#roster;
    for (let place = 0; place < names.length; place++) {
      yield [names[place] as string, this.#values[place] as V];
    }
  }

  keys(): MapIterator<string> {
    return this.#roster.names.values();
  }

  values(): MapIterator<V> {
    return this.#values.values();
  }

  [Symbol.iterator](): Generator<[string, V], undefined> {
    return this.entries();
  }
}

function placesOf(names: readonly string[]): ReadonlyMap<string, number> {
  return new Map(names.map((name, place) => [name, place]));
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, place) => name === b[place]);
}
