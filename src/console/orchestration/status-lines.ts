// Separates the script's status lines from the output of its programs; both use the same streams.

/** Longest status line of an action's script; its facts are short. */
export const STATUS_LINE_MAX_BYTES = 1_024;

const LINE_FEED = 0x0a;
const RECORD_SEPARATOR = 0x1e;

/** Receives both parts of a stream, in order. */
export interface StatusLineSink {
  onBytes(bytes: Buffer): void;
  /** A status line, in words. */
  onWords(words: readonly string[]): void;
}

/**
 * Parses one stream. A status line begins with a record separator and this run's secret, which no program
 * knows.
 */
export class StatusLines {
  readonly #head: Buffer;
  readonly #sink: StatusLineSink;
  #held: Buffer = Buffer.alloc(0);

  constructor(secret: string, sink: StatusLineSink) {
    this.#head = Buffer.from(`\u001e${secret} `);
    this.#sink = sink;
  }

  push(bytes: Buffer): void {
    let rest = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    this.#held = Buffer.alloc(0);
    for (let at = rest.indexOf(this.#head); at >= 0; at = rest.indexOf(this.#head)) {
      const begin = at + this.#head.length;
      const end = rest.indexOf(LINE_FEED, begin);
      this.#tell(rest.subarray(0, at));
      if (end < 0 && rest.length - at <= STATUS_LINE_MAX_BYTES) {
        this.#held = Buffer.from(rest.subarray(at));
        return;
      }
      const line = rest.toString("utf8", begin, end < 0 ? rest.length : end);
      if (end >= 0) this.#sink.onWords(line.split(" "));
      rest = end < 0 ? Buffer.alloc(0) : rest.subarray(end + 1);
    }
    const at = this.#beginning(rest);
    this.#tell(rest.subarray(0, at));
    this.#held = Buffer.from(rest.subarray(at));
  }

  /** Ends the stream: an incomplete status line is output. */
  end(): void {
    this.#tell(this.#held);
    this.#held = Buffer.alloc(0);
  }

  /** Offset at the end of the bytes where a status line may begin. */
  #beginning(bytes: Buffer): number {
    const at = bytes.lastIndexOf(RECORD_SEPARATOR);
    if (at < 0 || bytes.length - at >= this.#head.length) return bytes.length;
    return bytes.subarray(at).equals(this.#head.subarray(0, bytes.length - at)) ? at : bytes.length;
  }

  #tell(bytes: Buffer): void {
    if (bytes.length > 0) this.#sink.onBytes(bytes);
  }
}
