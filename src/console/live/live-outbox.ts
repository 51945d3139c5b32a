// The queue of one WebSocket: messages in order, and of the snapshots only the newest (decision D8).

/**
 * Bytes that may wait for a slow reader of a WebSocket; beyond, snapshots are dropped, then the socket is
 * closed (decision D8).
 */
export const LIVE_BUFFER_MAX_BYTES = 1_048_576;

interface Entry {
  /** Undefined for a dropped snapshot. */
  message: Buffer | undefined;
  readonly isSnapshot: boolean;
}

/** The next message for the reader; `taken` is called once the reader has it. */
export interface Outgoing {
  readonly message: Buffer;
  readonly taken: () => void;
}

/** Messages for one reader. Readers share the buffers; each has an order of its own. */
export class LiveOutbox {
  readonly #entries: Entry[] = [];
  #snapshot: Entry | undefined;
  #eventBytes = 0;

  /**
   * Bytes of events that the reader has not taken yet. Snapshots do not count, because they can be dropped.
   */
  get eventBytes(): number {
    return this.#eventBytes;
  }

  /** Adds an event. False when the reader is too far behind, even without a snapshot. */
  addEvent(message: Buffer): boolean {
    this.#entries.push({ message, isSnapshot: false });
    this.#eventBytes += message.length;
    if (this.#isFull()) this.#dropSnapshot();
    return !this.#isFull();
  }

  /** Sets the snapshot in place of one that still waits; drops it when events nearly fill the buffer. */
  setSnapshot(message: Buffer): void {
    this.#dropSnapshot();
    this.#snapshot = { message, isSnapshot: true };
    this.#entries.push(this.#snapshot);
    if (this.#isFull()) this.#dropSnapshot();
  }

  /** The next message; undefined when none waits. */
  next(): Outgoing | undefined {
    for (let entry = this.#entries.shift(); entry !== undefined; entry = this.#entries.shift()) {
      const { message, isSnapshot } = entry;
      if (message === undefined) continue;
      if (isSnapshot) {
        this.#snapshot = undefined;
        return { message, taken: () => undefined };
      }
      return { message, taken: () => this.#taken(message.length) };
    }
    return undefined;
  }

  /** A snapshot with nothing before it always has room, whatever its size. */
  #isFull(): boolean {
    const snapshotBytes = this.#snapshot?.message?.length ?? 0;
    return this.#eventBytes > 0 && this.#eventBytes + snapshotBytes > LIVE_BUFFER_MAX_BYTES;
  }

  #dropSnapshot(): void {
    if (this.#snapshot !== undefined) this.#snapshot.message = undefined;
    this.#snapshot = undefined;
  }

  #taken(bytes: number): void {
    this.#eventBytes -= bytes;
  }
}
