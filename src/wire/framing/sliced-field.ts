// Finds the bytes field that ends a protobuf message, and separates or joins its payload and the rest.
import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { FRAME_HEADER_BYTES, frameInPlace } from "./frames.ts";

/** A longer prefix is not searched: the message takes the ordinary decoder. */
export const PREFIX_MAX_BYTES = 16_384;
const EMPTY = new Uint8Array(0);

const varintBytes = (value: number): number[] => {
  const bytes: number[] = [];
  let left = value;
  while (left >= 128) {
    bytes.push((left % 128) | 128);
    left = Math.floor(left / 128);
  }
  bytes.push(left);
  return bytes;
};

/** Result of scanning the beginning of a message. */
export type Scan = { readonly payloadAt: number; readonly cuts: readonly number[] } | "more" | "ordinary";

/** How far a scan of one message has come. */
export class ScanPlace {
  /** The offset behind the last whole field. */
  at = 0;
  /** Offsets of tag and content of the path's fields so far. */
  readonly cuts: number[] = [];
}

interface Cursor {
  at: number;
}

/** Reads a varint below 2^53; -1 when it is cut off, -2 when it is longer than ten bytes. */
const readVarint = (bytes: Uint8Array, cursor: Cursor): number => {
  let value = 0;
  let scale = 1;
  for (let i = 0; i < 10; i++) {
    const byte = bytes[cursor.at];
    if (byte === undefined) return -1;
    cursor.at++;
    value += (byte & 127) * scale;
    if (byte < 128) return value;
    scale *= 128;
  }
  return -2;
};

/**
 * Encodes a message up to and including the length of its payload, behind `headBytes` free bytes; undefined for one
 * that the general encoder has to judge. Throws nothing.
 */
export type HeadEncoder = (init: unknown, payloadBytes: number, headBytes: number) => Buffer | undefined;

const headed = (body: Uint8Array, payloadBytes: number): Buffer =>
  frameInPlace(Buffer.concat([Buffer.alloc(FRAME_HEADER_BYTES), body]), payloadBytes);

type Nested = { $typeName: string } & Record<string, unknown>;

/** The path to a bytes field, such as `chunk.data`, through messages each of which ends with the next. */
export class SlicedField<D extends DescMessage> {
  readonly #desc: D;
  readonly #fields: readonly DescField[];
  /** The tag of each field of the path in wire form. */
  readonly #tags: readonly (readonly number[])[];
  readonly #encodeOwn: HeadEncoder | undefined;

  /** `encodeOwn` replaces the general encoder. Throws TypeError when the path names no bytes field. */
  constructor(desc: D, path: string, encodeOwn?: HeadEncoder) {
    this.#desc = desc;
    this.#encodeOwn = encodeOwn;
    const fields: DescField[] = [];
    let message: DescMessage | undefined = desc;
    for (const name of path.split(".")) {
      const field: DescField | undefined = message?.fields.find((one) => one.name === name);
      if (field === undefined) throw new TypeError(`${desc.typeName} has no field ${path}`);
      fields.push(field);
      message = field.fieldKind === "message" ? field.message : undefined;
    }
    const last = fields.at(-1) as DescField;
    if (last.fieldKind !== "scalar" || last.scalar !== ScalarType.BYTES) {
      throw new TypeError(`${desc.typeName}.${path} is not a bytes field`);
    }
    this.#fields = fields;
    this.#tags = fields.map((field) => varintBytes(field.number * 8 + 2));
  }

  /**
   * Searches the first bytes of a message of bodyBytes for the payload, onwards from `place`. Returns its offset, and
   * per level the offsets of the last field's tag and content in pairs. Returns "more" when the bytes do not reach that
   * far, or "ordinary". Looks at each field once, however many calls its message takes.
   */
  scan(bytes: Uint8Array, bodyBytes: number, place: ScanPlace): Scan {
    const { cuts } = place;
    const cursor: Cursor = { at: place.at };
    while (cursor.at < bodyBytes) {
      const tagAt = cursor.at;
      if (tagAt > PREFIX_MAX_BYTES) return "ordinary";
      const tag = readVarint(bytes, cursor);
      if (tag === -1) return "more";
      const wireType = tag & 7;
      if (wireType === 0) {
        if (readVarint(bytes, cursor) === -1) return "more";
      } else if (wireType === 1) cursor.at += 8;
      else if (wireType === 5) cursor.at += 4;
      else if (wireType === 2) {
        const length = readVarint(bytes, cursor);
        if (length === -1) return "more";
        const isLast = cursor.at + length === bodyBytes;
        if (length < 0) return "ordinary";
        if (isLast && Math.floor(tag / 8) === this.#fields[cuts.length / 2]?.number) {
          cuts.push(tagAt, cursor.at);
          if (cuts.length === this.#fields.length * 2) return { payloadAt: cursor.at, cuts };
        } else {
          cursor.at += length;
        }
      } else return "ordinary";
      place.at = cursor.at;
    }
    return "ordinary";
  }

  /** Decodes a message with an empty payload from the bytes before it. Throws the errors of fromBinary. */
  decode(bytes: Uint8Array, cuts: readonly number[]): MessageShape<D> {
    let level = this.#fields.length - 1;
    let content = bytes.subarray(level === 0 ? 0 : cuts[level * 2 - 1], cuts[level * 2]);
    while (level-- > 0) {
      const outer = bytes.subarray(level === 0 ? 0 : cuts[level * 2 - 1], cuts[level * 2]);
      content = Buffer.concat([
        outer,
        Buffer.from(this.#tags[level] ?? []),
        Buffer.from(varintBytes(content.length)),
        content,
      ]);
    }
    const message = fromBinary(this.#desc, content, { readUnknownFields: false });
    // An earlier occurrence of the field is overridden by the last one.
    this.takePayload(message);
    return message;
  }

  /** Takes the payload out of a fully decoded message, and leaves the field empty. */
  takePayload(message: MessageShape<D>): Uint8Array {
    let holder: Nested | undefined = message;
    for (const field of this.#fields.slice(0, -1)) holder = holder && this.#get(holder, field);
    const last = (this.#fields.at(-1) as DescField).localName;
    const payload = holder?.[last];
    if (holder === undefined || !(payload instanceof Uint8Array)) return EMPTY;
    holder[last] = EMPTY;
    return payload;
  }

  /**
   * Encodes a message up to and including the length of its payload, behind gRPC's five bytes, so that the
   * payload can follow. Throws TypeError for a message whose path to the payload is not set, since it can
   * have none.
   */
  encode(init: MessageInitShape<D>, payloadBytes: number): Buffer {
    const own = this.#encodeOwn?.(init, payloadBytes, FRAME_HEADER_BYTES);
    if (own !== undefined) return frameInPlace(own, payloadBytes);
    const message = create(this.#desc, init) as Message as Nested;
    if (!this.#reaches(message)) {
      if (payloadBytes > 0) throw new TypeError(`${this.#desc.typeName} has no field for its payload set`);
      return headed(toBinary(this.#desc, message as MessageShape<D>), 0);
    }
    return headed(this.#encodeLevel(message, this.#desc, 0, payloadBytes), payloadBytes);
  }

  #encodeLevel(message: Nested, desc: DescMessage, level: number, payloadBytes: number): Buffer {
    const field = this.#fields[level] as DescField;
    const tag = Buffer.from(this.#tags[level] ?? []);
    if (level === this.#fields.length - 1) {
      const before = this.#without(message, desc, field);
      return Buffer.concat([before, tag, Buffer.from(varintBytes(payloadBytes))]);
    }
    const nested = this.#get(message, field) as Nested;
    const inner = this.#encodeLevel(nested, field.message as DescMessage, level + 1, payloadBytes);
    const before = this.#without(message, desc, field);
    return Buffer.concat([before, tag, Buffer.from(varintBytes(inner.length + payloadBytes)), inner]);
  }

  /** The message's bytes without one field; the message itself is unchanged afterwards. */
  #without(message: Nested, desc: DescMessage, field: DescField): Uint8Array {
    const name = field.oneof?.localName ?? field.localName;
    const value = message[name];
    message[name] =
      field.oneof === undefined ? (field.fieldKind === "scalar" ? EMPTY : undefined) : { case: undefined };
    try {
      return toBinary(desc, message as unknown as MessageShape<DescMessage>);
    } finally {
      message[name] = value;
    }
  }

  #reaches(message: Nested): boolean {
    let holder: Nested | undefined = message;
    for (const field of this.#fields.slice(0, -1)) holder = holder && this.#get(holder, field);
    return holder !== undefined;
  }

  #get(message: Nested, field: DescField): Nested | undefined {
    if (field.oneof === undefined) return message[field.localName] as Nested | undefined;
    const selected = message[field.oneof.localName] as { case?: string; value?: Nested };
    return selected.case === field.localName ? selected.value : undefined;
  }
}
