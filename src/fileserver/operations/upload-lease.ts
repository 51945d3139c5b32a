// Lets one stream at a time work on a resumable upload; whoever comes later takes it over from a stream that may be dead (D15).
import { GroveError } from "#base/errors.ts";

/** Whoever holds an upload now. */
interface Turn {
  /** Asks the holder to end. */
  readonly end: (reason: unknown) => void;
  /** Resolves when it has. */
  readonly ended: Promise<void>;
}

/** Turns on uploads; as many as there are streams and calls about them. */
export class UploadLease {
  readonly #turns = new Map<string, Turn>();

  /** True while somebody works on an upload. */
  isTaken(uploadId: string): boolean {
    return this.#turns.has(uploadId);
  }

  /**
   * Runs an action as the only one on an upload. A holder is told to end, and is waited for; `onTakenOver` is told so when the next one
   * comes. Nobody can see whether the client of a silent stream still lives, so the latest one is believed.
   */
  async take<T>(
    uploadId: string,
    onTakenOver: (reason: GroveError) => void,
    action: () => Promise<T>,
  ): Promise<T> {
    for (let holder = this.#turns.get(uploadId); holder !== undefined; holder = this.#turns.get(uploadId)) {
      holder.end(new GroveError("UPLOAD_TAKEN_OVER", "another stream goes on with this upload"));
      await holder.ended;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#turns.set(uploadId, { end: (reason) => onTakenOver(reason as GroveError), ended: promise });
    try {
      return await action();
    } finally {
      this.#turns.delete(uploadId);
      resolve();
    }
  }
}
