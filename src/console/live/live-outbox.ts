// What waits for one WebSocket: messages in their order, of the snapshots only the newest (decision D8).

/** Bytes that may wait for a slow reader of a WebSocket; beyond, snapshots are dropped, then the socket is closed (decision D8). */
export const LIVE_BUFFER_MAX_BYTES = 1_048_576;

interface Entry {
  /** Undefined for a snapshot that was dropped. */
  message: Buffer | undefined;
  readonly isSnapshot: boolean;
}

/** A message that the reader is to get; `taken` is to be called when it has it. */
export interface Outgoing {
  readonly message: Buffer;
  readonly taken: () => void;
}

/** Messages on their way to one reader. They are shared by all readers; only their order is kept here for each. */
export class LiveOutbox {
  readonly #entries: Entry[] = [];
  #snapshot: Entry | undefined;
  #eventBytes = 0;

  /** Bytes of events that the reader has not taken yet. Snapshots do not count: nobody has to wait for one. */
  get eventBytes(): number {
    return this.#eventBytes;
  }

  /** Takes an event. False when the reader is now too far behind, even without a snapshot. */
  addEvent(message: Buffer): boolean {
    this.#entries.push({ message, isSnapshot: false });
    this.#eventBytes += message.length;
    if (this.#isFull()) this.#dropSnapshot();
    return !this.#isFull();
  }

  /** Takes a snapshot in place of one that still waits. Behind events that nearly fill the buffer there is no place for any. */
  setSnapshot(message: Buffer): void {
    this.#dropSnapshot();
    this.#snapshot = { message, isSnapshot: true };
    this.#entries.push(this.#snapshot);
    if (this.#isFull()) this.#dropSnapshot();
  }

  /** The next message; undefined when nothing waits. */
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

  /** However large it is, a snapshot before which nothing waits has its place. */
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
