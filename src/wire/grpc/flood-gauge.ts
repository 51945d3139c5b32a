// Whether a client floods its connection: with frames that reach no call, such as headers that are too large to be read.
import {
  FLOOD_BURST_BYTES,
  FLOOD_BYTES_PER_SECOND,
  FRAME_COST_BYTES,
  LATE_BYTES,
  WRITTEN_PER_UPDATE_BYTE,
} from "#wire/framing/limits.ts";

/** What a name or a value takes on the wire beside its characters. */
const TEXT_COST_BYTES = 2;

/** What went over a connection so far. */
export interface Traffic {
  readonly readBytes: number;
  readonly writtenBytes: number;
}

/**
 * Measures what a connection sends against what its calls took of it. The difference is windows, pings and the frames' own heads: little,
 * of anybody who means to be served. What else may be there costs the server its time before it hears of it: nghttp2 unpacks whatever it
 * is given, and tells nobody of headers above the limit.
 */
export class FloodGauge {
  #takenBytes = 0;
  #unusedBytes = 0;
  #readBytes = 0;
  /** The highest count of bytes that no call took, so far and at the last look. */
  #seenBytes = 0;
  #newBytes = 0;
  /** Bytes above what is allowed; below zero those that may still come late. */
  #levelBytes = 0;
  #checkedAtMs: number;

  constructor(nowMs: number) {
    this.#checkedAtMs = nowMs;
  }

  /** Counts bytes that a call took, or that may be on their way to one that takes no more: those are expected for as long as nothing comes. */
  took(bytes: number): void {
    this.#takenBytes += bytes;
  }

  /** Bytes that no call took and that came between the last two looks. */
  get newBytes(): number {
    return this.#newBytes;
  }

  /** How far the connection is above what is allowed; zero or less where it is not. `nowMs` is steady. */
  excessBytes({ readBytes, writtenBytes }: Traffic, nowMs: number): number {
    const unusedBytes = readBytes - this.#takenBytes - writtenBytes / WRITTEN_PER_UPDATE_BYTE;
    const allowedBytes = ((nowMs - this.#checkedAtMs) / 1_000) * FLOOD_BYTES_PER_SECOND;
    const levelBytes = this.#levelBytes + unusedBytes - this.#unusedBytes;
    this.#newBytes = Math.max(0, unusedBytes - this.#seenBytes);
    this.#seenBytes = Math.max(this.#seenBytes, unusedBytes);
    this.#checkedAtMs = nowMs;
    this.#unusedBytes = unusedBytes;
    // A network that stands still keeps what is on its way.
    const forgottenBytes = readBytes === this.#readBytes ? 0 : allowedBytes;
    this.#readBytes = readBytes;
    this.#levelBytes =
      levelBytes > 0
        ? Math.max(0, levelBytes - allowedBytes)
        : Math.max(-LATE_BYTES, Math.min(0, levelBytes + forgottenBytes));
    return this.#levelBytes - FLOOD_BURST_BYTES;
  }
}

/** What a call's headers took on the wire, or a little more. */
export function headerBytes(raw: readonly string[]): number {
  let bytes = FRAME_COST_BYTES;
  for (const text of raw) bytes += text.length + TEXT_COST_BYTES;
  return bytes;
}
