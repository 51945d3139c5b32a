// How many bytes of small files may be under way at once: as many as the way to the server carries in seconds.
import { type Clock, systemClock } from "#base/clock.ts";
import { isFinal } from "#client/connection/final-failure.ts";
import { IN_FLIGHT_BYTES_FIRST, IN_FLIGHT_BYTES_MAX, IN_FLIGHT_BYTES_MIN } from "#client/terminal/limits.ts";

/** A transfer that ended within this time found room on the way. */
const SOON_MS = 2_000;
/** One that took longer than this waited behind the others. */
const LATE_MS = 5_000;

/** A transfer that waits for room. */
interface Waiting {
  readonly bytes: number;
  readonly begin: () => void;
  readonly giveUp: (error: unknown) => void;
}

/**
 * The bytes in flight of one command. What waits on a slow link in front of a file counts as that file's own time at
 * the server and in deadlines, so few bytes begin. Their number grows by each transfer that ends soon, doubling in
 * each round, and is halved once for those that began together and end late.
 */
export class TransferWindow {
  readonly #clock: Pick<Clock, "steadyMs">;
  /** In their order; as many as transfers are in progress at most. */
  readonly #waiting: Waiting[] = [];
  #failure: { readonly error: unknown } | undefined;
  #allowedBytes: number = IN_FLIGHT_BYTES_FIRST;
  #bytes = 0;
  #count = 0;
  #halvedAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "steadyMs"> = systemClock) {
    this.#clock = clock;
  }

  /**
   * Runs a transfer of so many bytes once they have room, one after the other; one alone always may begin. A failure
   * that every other would meet too rejects those that wait: each would try for a minute of its own.
   */
  async run(bytes: number, transfer: () => Promise<void>): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.#waiting.length > 0 || !this.#hasRoom(bytes)) {
      await new Promise<void>((begin, giveUp) => this.#waiting.push({ bytes, begin, giveUp }));
    } else this.#begin(bytes);
    const atMs = this.#clock.steadyMs();
    try {
      await transfer();
      this.#learn(bytes, atMs);
    } catch (error) {
      if (isFinal(error)) this.#end(error);
      throw error;
    } finally {
      this.#bytes -= bytes;
      this.#count--;
      this.#admit();
    }
  }

  #hasRoom(bytes: number): boolean {
    return this.#count === 0 || this.#bytes + bytes <= this.#allowedBytes;
  }

  #end(error: unknown): void {
    this.#failure ??= { error };
    for (const { giveUp } of this.#waiting.splice(0)) giveUp(error);
  }

  #begin(bytes: number): void {
    this.#bytes += bytes;
    this.#count++;
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (!this.#hasRoom(next.bytes)) return;
      this.#waiting.shift();
      this.#begin(next.bytes);
      next.begin();
    }
  }

  /** What a transfer tells of the way that has ended well. */
  #learn(bytes: number, atMs: number): void {
    const nowMs = this.#clock.steadyMs();
    const tookMs = nowMs - atMs;
    if (tookMs <= SOON_MS) {
      this.#allowedBytes = Math.min(this.#allowedBytes + bytes, IN_FLIGHT_BYTES_MAX);
    } else if (tookMs > LATE_MS && atMs >= this.#halvedAtMs) {
      this.#allowedBytes = Math.max(this.#allowedBytes / 2, IN_FLIGHT_BYTES_MIN);
      this.#halvedAtMs = nowMs;
    }
  }
}
