// Detects connections flooded with frames that reach no call, such as headers too large to be read.
import {
  FLOOD_BURST_BYTES,
  FLOOD_BYTES_PER_SECOND,
  FRAME_COST_BYTES,
  LATE_BYTES,
  WRITTEN_PER_UPDATE_BYTE,
} from "#wire/framing/limits.ts";

/** Bytes of a name or value on the wire besides its characters. */
const TEXT_COST_BYTES = 2;

/** Traffic of a connection so far. */
export interface Traffic {
  readonly readBytes: number;
  readonly writtenBytes: number;
}

/**
 * Compares the bytes of a connection with those that its calls took. For honest clients the difference is
 * small: windows, pings and frame headers. Anything else costs the server time unseen: nghttp2 unpacks all
 * frames, and reports no headers above the limit.
 */
export class FloodGauge {
  #takenBytes = 0;
  #unusedBytes = 0;
  #readBytes = 0;
  /** The highest count of bytes outside calls, so far and at the last check. */
  #seenBytes = 0;
  #newBytes = 0;
  /** Bytes above the allowance; below zero those that may still arrive late. */
  #levelBytes = 0;
  #checkedAtMs: number;

  constructor(nowMs: number) {
    this.#checkedAtMs = nowMs;
  }

  /**
   * Counts bytes that a call took, or that may be on their way to an ended one and stay expected meanwhile.
   */
  took(bytes: number): void {
    this.#takenBytes += bytes;
  }

  /** Bytes outside calls between the last two checks. */
  get newBytes(): number {
    return this.#newBytes;
  }

  /** Bytes of the connection above its allowance; zero or less within it. `nowMs` is steady. */
  excessBytes({ readBytes, writtenBytes }: Traffic, nowMs: number): number {
    const unusedBytes = readBytes - this.#takenBytes - writtenBytes / WRITTEN_PER_UPDATE_BYTE;
    const allowedBytes = ((nowMs - this.#checkedAtMs) / 1_000) * FLOOD_BYTES_PER_SECOND;
    const levelBytes = this.#levelBytes + unusedBytes - this.#unusedBytes;
    this.#newBytes = Math.max(0, unusedBytes - this.#seenBytes);
    this.#seenBytes = Math.max(this.#seenBytes, unusedBytes);
    this.#checkedAtMs = nowMs;
    this.#unusedBytes = unusedBytes;
    // A stalled network keeps the bytes on their way.
    const forgottenBytes = readBytes === this.#readBytes ? 0 : allowedBytes;
    this.#readBytes = readBytes;
    this.#levelBytes =
      levelBytes > 0
        ? Math.max(0, levelBytes - allowedBytes)
        : Math.max(-LATE_BYTES, Math.min(0, levelBytes + forgottenBytes));
    return this.#levelBytes - FLOOD_BURST_BYTES;
  }
}

/** Approximate bytes of a call's headers on the wire, rounded up. */
export function headerBytes(raw: readonly string[]): number {
  let bytes = FRAME_COST_BYTES;
  for (const text of raw) bytes += text.length + TEXT_COST_BYTES;
  return bytes;
}
