// How much of all uploads together may be on its way to the disk.
import {
  UPLOAD_GATHER_BYTES,
  UPLOAD_GATHER_MIN_BYTES,
  UPLOADS_GATHERED_BYTES,
  UPLOADS_IN_FLIGHT_BYTES,
} from "#base/limits.ts";

/** Counts bytes in flight and wakes those who wait for fewer. */
export class UploadBudget {
  #bytesInFlight = 0;
  #openUploads = 0;
  readonly #waiting = new Set<() => void>();

  /** True when senders have to wait. */
  get isSpent(): boolean {
    return this.#bytesInFlight > UPLOADS_IN_FLIGHT_BYTES;
  }

  /** How much one upload gathers before it writes: less, the more there are. */
  get gatherBytes(): number {
    const share = UPLOADS_GATHERED_BYTES / this.#openUploads;
    return Math.min(UPLOAD_GATHER_BYTES, Math.max(UPLOAD_GATHER_MIN_BYTES, share));
  }

  /** An upload has begun. */
  begin(): void {
    this.#openUploads++;
  }

  /** An upload has ended. */
  end(): void {
    this.#openUploads--;
  }

  take(byteCount: number): void {
    this.#bytesInFlight += byteCount;
  }

  give(byteCount: number): void {
    this.#bytesInFlight -= byteCount;
    if (this.isSpent || this.#waiting.size === 0) return;
    const wakes = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of wakes) wake();
  }

  /** Calls back once when the budget is no longer spent; at most one callback per upload waits. */
  whenFree(wake: () => void): void {
    this.#waiting.add(wake);
  }
}
