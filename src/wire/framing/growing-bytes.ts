// Joins slices as they come, at a cost that grows with their bytes and not with their number.

/** Joined slices. */
export class GrowingBytes {
  #buffer: Buffer;
  #length: number;

  /** Begins with a copy of the first slice. */
  constructor(first: Buffer) {
    this.#buffer = Buffer.from(first);
    this.#length = first.length;
  }

  /** Adds a slice and returns all bytes so far: a view that the next slices leave as it is. */
  add(slice: Buffer): Buffer {
    const length = this.#length + slice.length;
    if (length > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(length * 2);
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    slice.copy(this.#buffer, this.#length);
    this.#length = length;
    return this.#buffer.subarray(0, length);
  }
}
