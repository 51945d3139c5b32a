// The bytes of one upload that wait to be written, copied into buffers of the pool.
import type { WriteBuffers } from "./write-buffers.ts";

/** Filled buffers, cut to their content. Give them back once they are written or dropped. */
export interface Gathered {
  readonly slices: readonly Buffer[];
  readonly byteCount: number;
  /** Returns the buffers to the pool. */
  readonly release: () => void;
}

/** Gathers slices in their order. */
export class GatheredBytes {
  readonly #pool: WriteBuffers;
  /** Bytes of a first buffer that is this upload's own, so that a small file takes no whole buffer; or 0. */
  readonly #firstBytes: number;
  #buffers: Buffer[] = [];
  #usedOfLast = 0;
  #byteCount = 0;
  #hasBegun = false;

  constructor(pool: WriteBuffers, firstBytes: number) {
    this.#pool = pool;
    this.#firstBytes = firstBytes;
  }

  /** Gathered bytes that were not taken. */
  get byteCount(): number {
    return this.#byteCount;
  }

  /** Copies a slice behind those before it. */
  add(slice: Buffer): void {
    for (let at = 0; at < slice.length; ) {
      const copied = slice.copy(this.#bufferWithRoom(), this.#usedOfLast, at);
      this.#usedOfLast += copied;
      at += copied;
    }
    this.#byteCount += slice.length;
  }

  /** Takes everything out. */
  take(): Gathered {
    const buffers = this.#buffers;
    const taken = {
      slices: this.peek(),
      byteCount: this.#byteCount,
      release: () => this.#pool.give(buffers),
    };
    this.#buffers = [];
    this.#byteCount = 0;
    return taken;
  }

  /** Takes the filled buffers out, and everything where none is filled. */
  takeFilled(): Gathered {
    const last = this.#buffers.at(-1);
    const used = this.#usedOfLast;
    if (last === undefined || used === last.length || this.#buffers.length === 1) return this.take();
    this.#buffers.pop();
    this.#byteCount -= used;
    this.#usedOfLast = this.#buffers.at(-1)?.length ?? 0;
    const taken = this.take();
    this.#buffers = [last];
    this.#byteCount = used;
    this.#usedOfLast = used;
    return taken;
  }

  /** The gathered bytes, which stay here. */
  peek(): Buffer[] {
    return this.#buffers.map((buffer, index) =>
      index === this.#buffers.length - 1 ? buffer.subarray(0, this.#usedOfLast) : buffer,
    );
  }

  #bufferWithRoom(): Buffer {
    const last = this.#buffers.at(-1);
    if (last !== undefined && this.#usedOfLast < last.length) return last;
    const isOwn = !this.#hasBegun && this.#firstBytes > 0;
    this.#hasBegun = true;
    const buffer = isOwn ? Buffer.allocUnsafeSlow(this.#firstBytes) : this.#pool.take();
    this.#buffers.push(buffer);
    this.#usedOfLast = 0;
    return buffer;
  }
}
