// Measures whether the bytes that a client owes arrive fast enough.
import type { ServerLimits } from "#wire/framing/limits.ts";

/** The bytes that a call receives, window by window. */
export class ArrivalRate {
  readonly #limits: Pick<ServerLimits, "progressWindowMs" | "minimumBytesPerSecond">;
  #arrivedBytes = 0;
  #sinceMs: number;

  /** `nowMs` is steady. */
  constructor(limits: Pick<ServerLimits, "progressWindowMs" | "minimumBytesPerSecond">, nowMs: number) {
    this.#limits = limits;
    this.#sinceMs = nowMs;
  }

  arrived(bytes: number): void {
    this.#arrivedBytes += bytes;
  }

  /**
   * True when a window ends with too few bytes. While the client owes nothing, each check begins a window.
   */
  isTooSlow(owesBytes: boolean, nowMs: number): boolean {
    const { progressWindowMs, minimumBytesPerSecond } = this.#limits;
    const elapsedMs = nowMs - this.#sinceMs;
    if (owesBytes && elapsedMs < progressWindowMs) return false;
    const arrivedBytes = this.#arrivedBytes;
    this.#sinceMs = nowMs;
    this.#arrivedBytes = 0;
    return owesBytes && arrivedBytes < (elapsedMs / 1_000) * minimumBytesPerSecond;
  }
}
