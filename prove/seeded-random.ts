// Random numbers that a seed repeats: the same seed gives the same attack.

/** A stream of random numbers (32-bit state mixed by a Weyl sequence); for rigs only, never for secrets. */
export class SeededRandom {
  #state: number;

  /** @param seed any integer; its lower 32 bits count */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    return this.#draw() / 0x1_0000_0000;
  }

  /** 32 bits. */
  #draw(): number {
    this.#state = (this.#state + 0x9e37_79b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85eb_ca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35);
    return (mixed ^ (mixed >>> 16)) >>> 0;
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** A whole number from `first` to `last`, both included. */
  between(first: number, last: number): number {
    return first + this.below(last - first + 1);
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /**
   * One of the items.
   * @throws RangeError when there is none
   */
  pick<T>(of: readonly T[]): T {
    if (of.length === 0) throw new RangeError("nothing to pick from");
    return of[this.below(of.length)] as T;
  }

  /** All items in another order. */
  shuffled<T>(items: readonly T[]): T[] {
    const drawn = items.map((item) => ({ item, at: this.next() }));
    return drawn.sort((a, b) => a.at - b.at).map(({ item }) => item);
  }

  /** Bytes that do not compress and repeat no pattern. */
  bytes(length: number): Buffer {
    const words = new Uint32Array(Math.ceil(length / 4));
    const whole = length >>> 2;
    for (let at = 0; at < whole; at++) words[at] = this.#draw();
    const bytes = Buffer.from(words.buffer, 0, length);
    for (let at = 4 * whole; at < length; at++) bytes[at] = this.below(256);
    return bytes;
  }

  /** A stream of its own for one part of a rig, so that more draws in one part change nothing in another. */
  fork(label: string): SeededRandom {
    let hash = this.#state;
    for (const character of label) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x0100_0193);
    return new SeededRandom(hash);
  }
}
