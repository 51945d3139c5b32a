// Gives one stream at a time the lease of a resumable upload; the next stream takes it over (D15).
import { GroveError } from "#base/errors.ts";

/** The present holder of an upload. */
interface Turn {
  /** Asks the holder to end. */
  readonly end: (reason: unknown) => void;
  /** Resolves when the holder has ended. */
  readonly ended: Promise<void>;
}

/** Leases on uploads; at most as many as streams and calls about them. */
export class UploadLease {
  readonly #turns = new Map<string, Turn>();

  /** True while a holder works on an upload. */
  isTaken(uploadId: string): boolean {
    return this.#turns.has(uploadId);
  }

  /**
   * Runs an action as the only one on an upload, after the present holder has ended with the reason; `onTakenOver`
   * ends this one in turn. The latest stream wins, since a silent client may be dead.
   */
  async take<T>(
    uploadId: string,
    onTakenOver: (reason: GroveError) => void,
    action: () => Promise<T>,
    reason = new GroveError("UPLOAD_TAKEN_OVER", "another stream goes on with this upload"),
  ): Promise<T> {
    for (let holder = this.#turns.get(uploadId); holder !== undefined; holder = this.#turns.get(uploadId)) {
      holder.end(reason);
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
