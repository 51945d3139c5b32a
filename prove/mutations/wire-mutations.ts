// Mutates Protobuf messages field by field, in ways that a random flip seldom finds.
import type { SeededRandom } from "#prove/seeded-random.ts";
import { nastyText } from "./nasty-values.ts";

interface Field {
  readonly number: number;
  readonly type: number;
  /** All after the tag, its length included where it has one. */
  readonly payload: Buffer;
  /** Without its length; undefined for other types. */
  readonly content: Buffer | undefined;
}

const VARINT = 0;
const FIXED64 = 1;
const DELIMITED = 2;
const FIXED32 = 5;

/** Returns the message, changed in one to three ways. */
export function mutatedMessage(bytes: Uint8Array, random: SeededRandom): Buffer {
  let mutated: Buffer = Buffer.from(bytes);
  for (let changes = random.between(1, 3); changes > 0; changes--) mutated = changed(mutated, random);
  return mutated;
}

/** Returns the message with one of its texts replaced by a nasty one, and right in all else. */
export function withNastyText(bytes: Uint8Array, random: SeededRandom): Buffer {
  const fields = fieldsOf(Buffer.from(bytes));
  const texts = fields?.filter(({ type }) => type === DELIMITED) ?? [];
  if (fields === undefined || texts.length === 0) return mutatedMessage(bytes, random);
  const chosen = random.pick(texts);
  const content = chosen.content ?? Buffer.alloc(0);
  const inner = content.length > 1 && random.chance(0.2) ? fieldsOf(content) : undefined;
  const next =
    inner === undefined || inner.length === 0 ? pathLike(content, random) : withNastyText(content, random);
  return joined(fields.map((field) => (field === chosen ? delimited(field.number, next) : field)));
}

/** Many nasty names only take effect as a part of a path. */
function pathLike(content: Buffer, random: SeededRandom): Buffer {
  const text = nastyText(random);
  if (random.chance(0.5)) return text;
  const before = content.length === 0 ? Buffer.from("/") : content;
  return Buffer.concat([before, Buffer.from("/"), text]);
}

function changed(bytes: Buffer, random: SeededRandom): Buffer {
  const fields = fieldsOf(bytes);
  if (fields === undefined || fields.length === 0 || random.chance(0.25)) return scrambled(bytes, random);
  const at = random.below(fields.length);
  const field = fields[at] as Field;
  const rest = fields.toSpliced(at, 1);
  switch (random.below(8)) {
    case 0:
      return joined(rest);
    case 1:
      return joined([...fields, field, field]);
    case 2:
      return joined([...rest, field]);
    case 3:
      return joined(
        fields.with(at, { ...field, number: random.pick([0, 1, 2, 15, 16, 1_000, 536_870_911]) }),
      );
    case 4:
      return joined(fields.with(at, { ...field, type: random.below(8) }));
    case 5:
      return joined(fields.with(at, number(field.number, random)));
    case 6:
      return joined(fields.with(at, nested(field, random)));
    default:
      return joined(fields.with(at, delimited(field.number, nastyText(random))));
  }
}

function number(fieldNumber: number, random: SeededRandom): Field {
  const value = random.pick([0n, 1n, 127n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n]);
  const payload = random.chance(0.1) ? Buffer.alloc(random.between(1, 12), 0xff) : varint(value);
  return { number: fieldNumber, type: VARINT, payload, content: undefined };
}

/** Nests a message in itself: recursion must end somewhere. */
function nested(field: Field, random: SeededRandom): Field {
  const content = field.content ?? field.payload;
  if (random.chance(0.7)) return delimited(field.number, changed(content, random));
  let deep: Buffer = content;
  for (let depth = random.below(200); depth > 0; depth--) deep = joined([delimited(field.number, deep)]);
  return delimited(field.number, deep);
}

function scrambled(bytes: Buffer, random: SeededRandom): Buffer {
  if (bytes.length === 0) return random.bytes(random.below(16));
  const at = random.below(bytes.length);
  switch (random.below(5)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([bytes, random.bytes(random.below(40))]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), random.bytes(random.between(1, 8)), bytes.subarray(at)]);
    case 3:
      return random.bytes(random.below(64));
    default: {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] as number) ^ (1 << random.below(8));
      return flipped;
    }
  }
}

function delimited(fieldNumber: number, content: Buffer): Field {
  const payload = Buffer.concat([varint(BigInt(content.length)), content]);
  return { number: fieldNumber, type: DELIMITED, payload, content };
}

function joined(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.flatMap((field) => [varint((BigInt(field.number) << 3n) | BigInt(field.type)), field.payload]),
  );
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left > 127n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  bytes.push(Number(left));
  return Buffer.from(bytes);
}

/** Returns the fields of a message; undefined when it cannot be read so. */
function fieldsOf(bytes: Buffer): Field[] | undefined {
  const fields: Field[] = [];
  let at = 0;
  const readVarint = (): number | undefined => {
    let value = 0;
    for (let shift = 0; shift < 49; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined) return undefined;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
    return undefined;
  };
  while (at < bytes.length) {
    const tag = readVarint();
    if (tag === undefined) return undefined;
    const from = at;
    const type = tag % 8;
    let contentFrom: number | undefined;
    if (type === VARINT) readVarint();
    else if (type === FIXED64) at += 8;
    else if (type === FIXED32) at += 4;
    else if (type === DELIMITED) {
      const length = readVarint();
      if (length === undefined) return undefined;
      contentFrom = at;
      at += length;
    } else return undefined;
    if (at > bytes.length) return undefined;
    const content = contentFrom === undefined ? undefined : bytes.subarray(contentFrom, at);
    fields.push({ number: Math.floor(tag / 8), type, payload: bytes.subarray(from, at), content });
  }
  return fields;
}
