// The receive window of every stream: few streams have a wide one, many share a total.
import { type ServerLimits, STREAM_WINDOW_MIN_BYTES, WINDOWS_CALM_MS } from "#wire/framing/limits.ts";

/**
 * The window that streams should have now. It shrinks at once, since it bounds memory. It grows only after a time in
 * which a wider one would have fitted: each change is told to every connection, and streams come and go each second.
 */
export class ReceiveWindows {
  readonly #limits: Pick<ServerLimits, "streamWindowBytes" | "streamWindowsTotalBytes">;
  #bytes: number;
  /** The calm so far, and the widest window that fitted all the time. */
  #calm: { readonly sinceMs: number; bytes: number } | undefined;

  constructor(limits: Pick<ServerLimits, "streamWindowBytes" | "streamWindowsTotalBytes">) {
    this.#limits = limits;
    this.#bytes = limits.streamWindowBytes;
  }

  /** The window of a stream. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Fits the window to the number of streams that may receive; `nowMs` is steady. */
  fit(receiving: number, nowMs: number): void {
    const fitting = this.#fitting(receiving);
    if (fitting <= this.#bytes) {
      this.#bytes = fitting;
      this.#calm = undefined;
      return;
    }
    this.#calm ??= { sinceMs: nowMs, bytes: fitting };
    this.#calm.bytes = Math.min(this.#calm.bytes, fitting);
    if (nowMs - this.#calm.sinceMs < WINDOWS_CALM_MS) return;
    this.#bytes = this.#calm.bytes;
    this.#calm = undefined;
  }

  #fitting(receiving: number): number {
    const { streamWindowBytes, streamWindowsTotalBytes } = this.#limits;
    let bytes = streamWindowBytes;
    while (bytes > STREAM_WINDOW_MIN_BYTES && bytes * receiving > streamWindowsTotalBytes) {
      bytes = Math.max(STREAM_WINDOW_MIN_BYTES, bytes / 2);
    }
    return bytes;
  }
}
