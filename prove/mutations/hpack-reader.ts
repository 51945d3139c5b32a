// Reads HPACK header blocks without a dynamic table, and of them only the headers that show how a call ended.

/** The end of a call, as far as header blocks have shown it. */
export interface ReplyHead {
  httpStatus: number;
  /** -1 while no header has given it. */
  code: number;
  /**
   * Unpacks the text as sent, with percent signs, since few callers need it; undefined while there is none.
   */
  message: (() => string) | undefined;
}

const STATUS_INDEX_FIRST = 8;
/** RFC 7541, appendix A: entries 8 to 14. */
const STATUSES = [200, 204, 206, 304, 400, 404, 500] as const;
const STATIC_ENTRIES = 61;

/** RFC 7541, appendix B: the printable symbols by the length of their codes, which count up through them. */
const CODES: readonly (readonly [bits: number, symbols: string])[] = [
  [5, "012aceiost"],
  [6, " %-./3456789=A_bdfghlmnpru"],
  [7, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"],
  [8, "&*,;XZ"],
  [10, '!"()?'],
  [11, "'+|"],
  [12, "#>"],
  [13, "\0$@[]~"],
  [14, "^}"],
  [15, "<`{"],
];
const SYMBOLS = symbolsByCode();

/** Keyed by 2 ** bits + code. */
function symbolsByCode(): Map<number, string> {
  const symbols = new Map<number, string>();
  let code = 0;
  let before = 5;
  for (const [bits, all] of CODES) {
    code <<= bits - before;
    before = bits;
    for (const symbol of all) symbols.set((1 << bits) + code++, symbol);
  }
  return symbols;
}

/** Setters by header name. */
const names = new Map<string, string>();

/**
 * Adds a block's headers to `head`.
 * @throws Error at entries that no table of size 0 allows
 */
export function readReplyHead(block: Buffer, head: ReplyHead): void {
  const reader = new BlockReader(block);
  while (reader.at < block.length) {
    const first = block[reader.at] ?? 0;
    if (first >= 0x80) {
      const index = reader.number(7);
      const status = STATUSES[index - STATUS_INDEX_FIRST];
      if (index > STATIC_ENTRIES) throw new Error(`header ${index} is in no table`);
      if (status !== undefined) head.httpStatus = status;
      continue;
    }
    if (first >= 0x20 && first < 0x40) {
      reader.number(5);
      continue;
    }
    const index = reader.number(first >= 0x40 ? 6 : 4);
    if (index > STATIC_ENTRIES) throw new Error(`header ${index} is in no table`);
    const name = index === 0 ? reader.name() : STATUSES[index - STATUS_INDEX_FIRST] ? ":status" : "";
    if (name === ":status") head.httpStatus = Number(reader.text());
    else if (name === "grpc-status") head.code = Number(reader.text());
    else {
      const from = reader.at;
      reader.skip();
      if (name === "grpc-message") head.message = () => new BlockReader(block, from).text();
    }
  }
}

class BlockReader {
  at: number;
  readonly #block: Buffer;

  constructor(block: Buffer, at = 0) {
    this.#block = block;
    this.at = at;
  }

  /** Reads an integer whose first byte has this many bits for it. */
  number(bits: number): number {
    const mask = (1 << bits) - 1;
    let value = (this.#block[this.at++] ?? 0) & mask;
    if (value < mask) return value;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#block[this.at++];
      if (byte === undefined) throw new Error("a header block ends within a number");
      value += (byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  name(): string {
    const from = this.at;
    this.skip();
    const raw = this.#block.toString("latin1", from, this.at);
    let name = names.get(raw);
    if (name === undefined) {
      this.at = from;
      name = this.text();
      names.set(raw, name);
    }
    return name;
  }

  text(): string {
    const isPacked = (this.#block[this.at] ?? 0) >= 0x80;
    const length = this.number(7);
    const from = this.at;
    this.at += length;
    return isPacked ? this.#unpacked(from, this.at) : this.#block.toString("latin1", from, this.at);
  }

  skip(): void {
    const length = this.number(7);
    this.at += length;
  }

  /** Unpacks up to the first unprintable character or backslash: the text is only shown. */
  #unpacked(from: number, to: number): string {
    let text = "";
    let code = 1;
    for (let at = from; at < to; at++) {
      for (let bit = 7; bit >= 0; bit--) {
        code = (code << 1) | (((this.#block[at] ?? 0) >> bit) & 1);
        const symbol = SYMBOLS.get(code);
        if (symbol === undefined) continue;
        text += symbol;
        code = 1;
      }
    }
    return text;
  }
}
