// Ends uploads that wait for a client whose session has ended.
import type { Clock } from "#base/clock.ts";
import { SESSION_SWEEP_INTERVAL_MS } from "#base/limits.ts";

/** An upload as its watch sees it. */
interface Watched {
  /** Ends the wait for the client when its session has ended. */
  giveUpIfOver(): void;
}

/** Looks at intervals for uploads that wait for a client whose session has ended, so that none holds its reservation for ever. */
export class UploadWatch {
  readonly #uploads = new Set<Watched>();
  readonly #stop: () => void;

  constructor(clock: Clock) {
    this.#stop = clock.every(SESSION_SWEEP_INTERVAL_MS, () => {
      for (const upload of this.#uploads) upload.giveUpIfOver();
    });
  }

  /** Watches an upload while it runs; there are no more than the slots allow. */
  async over<T>(upload: Watched, run: () => Promise<T>): Promise<T> {
    this.#uploads.add(upload);
    try {
      return await run();
    } finally {
      this.#uploads.delete(upload);
    }
  }

  /** Ends the watch. */
  stop(): void {
    this.#stop();
  }
}
