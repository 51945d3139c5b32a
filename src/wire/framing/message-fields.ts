// Counts the fields of an encoded message before decoding, since they and not its bytes decide the cost.
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";

/** Content of a field by its number: a nested message, a list that may be packed, or neither. */
type Inside = FieldTable | "packed" | undefined;
type FieldTable = ReadonlyMap<number, Inside>;

const TABLES = new WeakMap<DescMessage, FieldTable>();
/** The decoder's own limit. */
const DEPTH_MAX = 100;
const VARINT_MAX_BYTES = 10;

/**
 * True when the message has more than `max` fields, including those of nested messages, list elements and
 * unknown fields. Stops counting there. An invalid message counts as far as it is readable: the decoder
 * refuses it.
 */
export function hasMoreFieldsThan(desc: DescMessage, bytes: Uint8Array, max: number): boolean {
  // Each field has at least one byte.
  if (bytes.length <= max) return false;
  const walk = new Walk(bytes, max);
  walk.count(tableOf(desc), bytes.length, 0);
  return walk.left < 0;
}

class Walk {
  readonly #bytes: Uint8Array;
  #at = 0;
  left: number;

  constructor(bytes: Uint8Array, max: number) {
    this.#bytes = bytes;
    this.left = max;
  }

  /** Counts up to an offset; false where the bytes cannot be read on. */
  count(table: FieldTable, end: number, depth: number): boolean {
    while (this.#at < end) {
      if (--this.left < 0) return false;
      const tag = this.#varint();
      if (tag < 0) return false;
      const wireType = tag % 8;
      if (wireType === 0) {
        if (this.#varint() < 0) return false;
      } else if (wireType === 1) this.#at += 8;
      else if (wireType === 5) this.#at += 4;
      else if (wireType === 2) {
        if (!this.#delimited(table.get(Math.floor(tag / 8)), end, depth)) return false;
      } else if (wireType > 5) return false;
      // Groups (3, 4) are unknown fields: their fields are counted one by one as they come.
    }
    return this.#at === end;
  }

  #delimited(inside: Inside, end: number, depth: number): boolean {
    const length = this.#varint();
    if (length < 0 || this.#at + length > end) return false;
    if (inside === undefined || depth >= DEPTH_MAX) {
      this.#at += length;
      return true;
    }
    if (inside !== "packed") return this.count(inside, this.#at + length, depth + 1);
    this.#at += length;
    this.left -= length;
    return this.left >= 0;
  }

  /** The next varint; -1 where it is cut off or too long. */
  #varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < VARINT_MAX_BYTES; i++) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) return -1;
      this.#at++;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    return -1;
  }
}

function tableOf(desc: DescMessage): FieldTable {
  const known = TABLES.get(desc);
  if (known !== undefined) return known;
  const table = new Map<number, Inside>();
  // Stored before it is filled, since a message type may contain itself.
  TABLES.set(desc, table);
  for (const field of desc.fields) {
    const inside = insideOf(field);
    if (inside !== undefined) table.set(field.number, inside);
  }
  return table;
}

function insideOf(field: DescField): Inside {
  if (field.fieldKind === "message") return tableOf(field.message);
  if (field.fieldKind === "map") {
    // An entry has its key as field 1 and its value as field 2.
    return new Map(field.mapKind === "message" ? [[2, tableOf(field.message)]] : []);
  }
  if (field.fieldKind !== "list") return undefined;
  if (field.listKind === "message") return tableOf(field.message);
  const isText =
    field.listKind === "scalar" && (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES);
  return isText ? undefined : "packed";
}
