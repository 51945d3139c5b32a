// Reads the keys of changed rows from a changeset of SQLite's session extension.

/** A row that a transaction has changed, made or removed. */
export interface ChangedRow {
  readonly table: string;
  /** Values of the primary key, in the order of the columns of the table. */
  readonly key: readonly (number | string)[];
  readonly isGone: boolean;
  /** True for a row that was not there before. */
  readonly isMade: boolean;
}

const TABLE = 0x54;
const INSERT = 18;
const DELETE = 9;
const UPDATE = 23;

/** The rows in a changeset: one for each, whatever happened to it meanwhile. */
export function changedRows(changeset: Uint8Array): ChangedRow[] {
  const reader = new Reader(changeset);
  const rows: ChangedRow[] = [];
  let table = "";
  let keys: boolean[] = [];
  while (!reader.isAtEnd) {
    const operation = reader.byte();
    if (operation === TABLE) {
      keys = Array.from({ length: reader.varint() }, () => false).map(() => reader.byte() !== 0);
      table = reader.name();
      continue;
    }
    // Whether the change came from a trigger.
    reader.byte();
    if (operation !== INSERT && operation !== DELETE && operation !== UPDATE) {
      throw new Error(`a changeset holds the unknown operation ${operation}`);
    }
    const values = keys.map(() => reader.value());
    if (operation === UPDATE) for (const _ of keys) reader.value();
    const key = values.filter((_, at) => keys[at]) as (number | string)[];
    rows.push({ table, key, isGone: operation === DELETE, isMade: operation === INSERT });
  }
  return rows;
}

/** Values of columns that are no keys are skipped, bytes not copied. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  byte(): number {
    return this.#bytes.readUInt8(this.#at++);
  }

  /** SQLite's form: seven bits a byte, the highest first. Lengths have at most five bytes. */
  varint(): number {
    let value = 0;
    for (;;) {
      const byte = this.byte();
      value = value * 128 + (byte & 0x7f);
      if (byte < 0x80) return value;
    }
  }

  name(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    const text = this.#bytes.toString("utf8", this.#at, end);
    this.#at = end + 1;
    return text;
  }

  value(): number | string | undefined {
    const type = this.byte();
    if (type === 0 || type === 5) return undefined;
    if (type === 1 || type === 2) {
      const value = type === 1 ? Number(this.#bytes.readBigInt64BE(this.#at)) : undefined;
      this.#at += 8;
      return value;
    }
    const length = this.varint();
    const from = this.#at;
    this.#at += length;
    return type === 3 ? this.#bytes.toString("utf8", from, this.#at) : undefined;
  }
}
