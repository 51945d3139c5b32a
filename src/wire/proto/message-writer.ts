// Writes the fields of a message of protobuf into a buffer that has room for all of them.

/** A character of JavaScript is at most three bytes of UTF-8. */
export const BYTES_PER_CHARACTER = 3;
/** Below this length a loop writes text faster than a call into Node. */
const SHORT_TEXT = 40;
const TWO_POW_28 = 2 ** 28;
const U64_BITS = 64;
/** Integers up to here are exact as numbers. */
export const EXACT_MAX: bigint = BigInt(Number.MAX_SAFE_INTEGER);

/** Writes fields one after the other. Those of a default value are left out, but for `element` and `told32`. */
export class MessageWriter {
  readonly #bytes: Buffer;
  #at: number;

  /** Room for `maxBytes`, behind `headBytes` free bytes. */
  constructor(headBytes: number, maxBytes: number) {
    this.#bytes = Buffer.allocUnsafe(headBytes + maxBytes);
    this.#at = headBytes;
  }

  written(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  text(tag: number, value: string): void {
    if (value !== "") this.element(tag, value);
  }

  /** Text of a repeated field, written even when it is empty. */
  element(tag: number, value: string): void {
    this.#varint(tag);
    if (value.length <= SHORT_TEXT && this.#shortText(value)) return;
    this.#varint(Buffer.byteLength(value));
    this.#at += this.#bytes.write(value, this.#at);
  }

  number(tag: number, value: number): void {
    if (value === 0) return;
    this.#varint(tag);
    this.#varint(value);
  }

  big(tag: number, value: bigint): void {
    if (value === 0n) return;
    this.#varint(tag);
    if (value > 0n && value <= EXACT_MAX) {
      this.#varint(Number(value));
      return;
    }
    let rest = BigInt.asUintN(U64_BITS, value);
    for (; rest > 0x7fn; rest >>= 7n) this.#bytes[this.#at++] = Number(rest & 0x7fn) | 0x80;
    this.#bytes[this.#at++] = Number(rest);
  }

  fixed32(tag: number, value: number): void {
    if (value !== 0) this.told32(tag, value);
  }

  /** A number that is written even when it is 0, since its field tells whether it is there. */
  told32(tag: number, value: number): void {
    this.#varint(tag);
    this.#at = this.#bytes.writeUInt32LE(value, this.#at);
  }

  bytes(tag: number, value: Uint8Array): void {
    if (value.length === 0) return;
    this.#varint(tag);
    this.#varint(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  packed(tag: number, values: readonly number[]): void {
    if (values.length === 0) return;
    this.#varint(tag);
    const lengthAt = this.#at;
    this.#at += 1;
    for (const value of values) this.#varint(value);
    // Permissions are four at most, so that their length fits in one byte.
    this.#bytes[lengthAt] = this.#at - lengthAt - 1;
  }

  /** Writes plain ASCII in a loop; false, with nothing written, for anything else. */
  #shortText(value: string): boolean {
    const { length } = value;
    const from = this.#at + 1;
    for (let index = 0; index < length; index += 1) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) return false;
      this.#bytes[from + index] = code;
    }
    this.#bytes[this.#at] = length;
    this.#at = from + length;
    return true;
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest >= TWO_POW_28; rest = Math.floor(rest / 128)) this.#bytes[this.#at++] = (rest % 128) | 0x80;
    for (; rest > 0x7f; rest >>>= 7) this.#bytes[this.#at++] = (rest & 0x7f) | 0x80;
    this.#bytes[this.#at++] = rest;
  }
}
