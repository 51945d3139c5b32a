// Buffers that gather uploads on their way to the disk, used again and again.

/** Bytes of one buffer. */
export const WRITE_BUFFER_BYTES = 65_536;
/** Bytes of free buffers that are kept while uploads are open. */
export const KEPT_BUFFER_BYTES = 16_777_216;

/**
 * A pool of buffers. Received slices are copied into them and die young. Kept as they came, slices that wait
 * for the disk would outlive the young generation, and freeing them takes a marking of the whole heap.
 */
export class WriteBuffers {
  readonly #free: Buffer[] = [];
  readonly #kept: number;

  /** A pool that keeps so many bytes of free buffers. */
  constructor(keptBytes: number = KEPT_BUFFER_BYTES) {
    this.#kept = keptBytes / WRITE_BUFFER_BYTES;
  }

  /** A buffer of WRITE_BUFFER_BYTES with any content. */
  take(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(WRITE_BUFFER_BYTES);
  }

  /** Takes back buffers that nothing reads any more. */
  give(buffers: readonly Buffer[]): void {
    for (const buffer of buffers) {
      if (buffer.length === WRITE_BUFFER_BYTES && this.#free.length < this.#kept) this.#free.push(buffer);
    }
  }

  /** Frees the kept buffers. */
  drop(): void {
    this.#free.length = 0;
  }
}
