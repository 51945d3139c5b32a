// Bounds the memory of nodes' answers in transit, however many arrive at once (M-05, M-08).

/** Bytes of a node's answer that need no room from the pool: a few hundred users. */
const POLL_ANSWER_FREE_BYTES = 131_072;
/** Bytes that all answers in transit may hold beyond that; a full pool aborts the largest answer. */
const POLL_POOL_BYTES = 100_663_296;

/** An answer in transit. */
export interface HeldAnswer {
  /** Asks for room for more bytes; false when the answer was aborted. */
  grow(bytes: number): boolean;
  /** Gives the room back. */
  release(): void;
}

interface Holder {
  bytes: number;
  isEnded: boolean;
  readonly giveWay: () => void;
}

/** The pool that all answers share. Small ones bypass it; when it is full, the largest is aborted. */
export class AnswerPool {
  readonly #freeBytes: number;
  readonly #maxBytes: number;
  readonly #holders = new Set<Holder>();
  #heldBytes = 0;

  constructor(limits: { freeBytes?: number; maxBytes?: number } = {}) {
    this.#freeBytes = limits.freeBytes ?? POLL_ANSWER_FREE_BYTES;
    this.#maxBytes = limits.maxBytes ?? POLL_POOL_BYTES;
  }

  /** Bytes that are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Begins an answer. `giveWay` is called at most once, when this answer must end to make room for others.
   */
  hold(giveWay: () => void): HeldAnswer {
    const holder: Holder = { bytes: -this.#freeBytes, isEnded: false, giveWay };
    return {
      grow: (bytes) => this.#grow(holder, bytes),
      release: () => this.#end(holder),
    };
  }

  #grow(holder: Holder, bytes: number): boolean {
    if (holder.isEnded) return false;
    const before = Math.max(0, holder.bytes);
    holder.bytes += bytes;
    const more = Math.max(0, holder.bytes) - before;
    if (more === 0) return true;
    this.#holders.add(holder);
    this.#heldBytes += more;
    while (this.#heldBytes > this.#maxBytes) {
      const largest = [...this.#holders].reduce((a, b) => (b.bytes > a.bytes ? b : a), holder);
      this.#end(largest);
      largest.giveWay();
    }
    return !holder.isEnded;
  }

  #end(holder: Holder): void {
    if (holder.isEnded) return;
    holder.isEnded = true;
    if (this.#holders.delete(holder)) this.#heldBytes -= holder.bytes;
  }
}
