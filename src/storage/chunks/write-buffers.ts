// Buffers that gather uploads on their way to the disk, used again and again.

/** Bytes of one buffer. */
export const WRITE_BUFFER_BYTES = 65_536;
/** Free buffers that are kept while uploads are open: 16 MiB. */
const KEPT_BUFFERS = 256;

/**
 * A pool of buffers. Received slices are copied into them and die young. Kept as they came, slices that wait
 * for the disk would outlive the young generation, and freeing them takes a marking of the whole heap.
 */
export class WriteBuffers {
  readonly #free: Buffer[] = [];
  readonly #kept: number;

  /** A pool of one of several threads keeps that part of the buffers. */
  constructor(parts = 1) {
    this.#kept = KEPT_BUFFERS / parts;
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
