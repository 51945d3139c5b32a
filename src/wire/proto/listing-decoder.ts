// Decodes Attrs, pages and files of them several times faster than by reflection, the fallback for unexpected bytes.
import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { type Attr, AttrSchema, type Kind } from "./gen/grove/v1/common_pb.ts";
import {
  ListDirResponseSchema,
  type ReadFileResponse,
  ReadFileResponseSchema,
} from "./gen/grove/v1/file_server_pb.ts";

/** One page of a listing. */
export interface DecodedListing {
  readonly nextPageToken: string;
  /**
   * Decodes the entries at the first call, so that the next page can be requested before. Throws if invalid.
   */
  readonly entries: () => readonly Attr[];
}

/**
 * Result for numbers, lengths and tags other than varints of at most seven bytes, which are exact as numbers.
 */
const UNEXPECTED = -1;
const VARINT_MAX_BYTES = 7;
const ENUMERATOR_MAX = 2 ** 31 - 1;
const FIELDS = 17;

const WIRE_BYTES = 2;
const ENTRIES_TAG = 1 * 8 + WIRE_BYTES;
const TOKEN_TAG = 2 * 8 + WIRE_BYTES;
const DATA_TAG = 1 * 8 + WIRE_BYTES;
const ATTR_TAG = 2 * 8 + WIRE_BYTES;

/** Decodes a ListDirResponse. Throws the errors of fromBinary. */
export function decodeListing(body: Buffer): DecodedListing {
  const spans = findEntries(body);
  if (spans === undefined) {
    const response = fromBinary(ListDirResponseSchema, body);
    return { nextPageToken: response.nextPageToken, entries: () => response.entries };
  }
  let entries: Attr[] | undefined;
  return {
    nextPageToken: spans.nextPageToken,
    entries: () => {
      entries ??= new EntryDecoder(body).decode(spans.ends);
      return entries;
    },
  };
}

/** Decodes one Attr. Throws the errors of fromBinary. */
export function decodeAttr(body: Buffer): Attr {
  return new EntryDecoder(body).one(0, body.length);
}

/** Decodes a ReadFileResponse, whose data stay a part of the body. Throws the errors of fromBinary. */
export function decodeReadFile(body: Buffer): ReadFileResponse {
  const reader = new Reader(body);
  const response: ReadFileResponse = { $typeName: "grove.v1.ReadFileResponse", data: new Uint8Array(0) };
  while (reader.at < body.length) {
    const tag = reader.varint();
    const length = reader.varint();
    const part = body.subarray(reader.at, reader.at + length);
    const isPlain = length !== UNEXPECTED && part.length === length;
    if (isPlain && tag === DATA_TAG) response.data = part;
    // A second one would be merged with the first.
    else if (isPlain && tag === ATTR_TAG && response.attr === undefined) response.attr = decodeAttr(part);
    else return fromBinary(ReadFileResponseSchema, body);
    reader.at += length;
  }
  return response;
}

/** Faster decoders for some reply messages, for clients. */
export const REPLY_DECODERS: ReadonlyMap<DescMessage, (body: Buffer) => Attr | ReadFileResponse> = new Map<
  DescMessage,
  (body: Buffer) => Attr | ReadFileResponse
>([
  [AttrSchema, decodeAttr],
  [ReadFileResponseSchema, decodeReadFile],
]);

interface Spans {
  /** Start and end of each entry, one after the other. */
  readonly ends: readonly number[];
  readonly nextPageToken: string;
}

/** Finds the entries without decoding them; undefined for messages with anything but entries and a token. */
function findEntries(body: Buffer): Spans | undefined {
  const reader = new Reader(body);
  const ends: number[] = [];
  let nextPageToken = "";
  while (reader.at < body.length) {
    const tag = reader.varint();
    const length = reader.varint();
    if (length === UNEXPECTED || reader.at + length > body.length) return undefined;
    if (tag === ENTRIES_TAG) {
      ends.push(reader.at, reader.at + length);
    } else if (tag === TOKEN_TAG && isAscii(body, reader.at, reader.at + length)) {
      nextPageToken = body.toString("latin1", reader.at, reader.at + length);
    } else {
      return undefined;
    }
    reader.at += length;
  }
  return { ends, nextPageToken };
}

class Reader {
  readonly bytes: Buffer;
  at = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  varint(): number {
    const first = this.bytes[this.at] ?? 0x80;
    if (first < 0x80) {
      this.at += 1;
      return first;
    }
    let value = 0;
    let factor = 1;
    for (let count = 0; count < VARINT_MAX_BYTES; count += 1) {
      const byte = this.bytes[this.at];
      if (byte === undefined) return UNEXPECTED;
      this.at += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    return UNEXPECTED;
  }
}

/** The last text of a field: owner, root and parent repeat from entry to entry. */
interface LastText {
  at: number;
  length: number;
  text: string;
}

let utf8: TextDecoder | undefined;

class EntryDecoder {
  readonly #reader: Reader;
  /** One character for each byte: substrings are cheaper than decoding each text from bytes. */
  readonly #characters: string;
  /** Last texts of the fields, across entries. */
  #last: readonly LastText[] | undefined;
  /** End of the current entry. */
  #end = 0;
  #isOdd = false;
  /** The last number turned into a bigint: both times of an entry are often the same. */
  #lastNumber = 0;
  #lastBig = 0n;

  constructor(body: Buffer) {
    this.#reader = new Reader(body);
    this.#characters = body.toString("latin1");
  }

  decode(ends: readonly number[]): Attr[] {
    this.#last = Array.from({ length: FIELDS }, () => ({ at: 0, length: 0, text: "" }));
    const entries: Attr[] = [];
    for (let index = 0; index < ends.length; index += 2) {
      entries.push(this.one(ends[index] ?? 0, ends[index + 1] ?? 0));
    }
    return entries;
  }

  one(from: number, end: number): Attr {
    this.#reader.at = from;
    this.#end = end;
    this.#isOdd = false;
    const entry = this.#entry();
    const isWhole = !this.#isOdd && this.#reader.at === end;
    return isWhole ? entry : fromBinary(AttrSchema, this.#reader.bytes.subarray(from, end));
  }

  /** Decodes one entry; the result is discarded when an unexpected field follows. */
  #entry(): Attr {
    // A literal with every field is a valid message; create() would visit each field once more.
    const attr: Attr = {
      $typeName: "grove.v1.Attr",
      id: "",
      name: "",
      path: "",
      kind: 0,
      size: 0n,
      mtimeMs: 0n,
      ctimeMs: 0n,
      owner: "",
      shared: [],
      etag: "",
      crc32: 0,
      childCount: 0n,
      root: "",
      parentId: "",
      createdBy: "",
      myPermissions: [],
      damaged: false,
    };
    while (this.#reader.at < this.#end && !this.#isOdd) this.#field(attr);
    return attr;
  }

  #field(attr: Attr): void {
    // Tags of proto/grove/v1/common.proto: field number times eight plus the wire type.
    switch (this.#reader.varint()) {
      case 10:
        attr.id = this.#text(1);
        break;
      case 18:
        attr.name = this.#text(2);
        break;
      case 26:
        attr.path = this.#text(3);
        break;
      case 32:
        attr.kind = this.#enumerator() as Kind;
        break;
      case 40:
        attr.size = this.#big();
        break;
      case 48:
        attr.mtimeMs = this.#big();
        break;
      case 56:
        attr.ctimeMs = this.#big();
        break;
      case 66:
        attr.owner = this.#text(8);
        break;
      case 74:
        attr.shared.push(this.#text(9));
        break;
      case 82:
        attr.etag = this.#text(10);
        break;
      case 93:
        attr.crc32 = this.#fixed32();
        break;
      case 96:
        attr.childCount = this.#big();
        break;
      case 106:
        attr.root = this.#text(13);
        break;
      case 114:
        attr.parentId = this.#text(14);
        break;
      case 122:
        attr.createdBy = this.#text(15);
        break;
      case 130:
        this.#numbers(attr.myPermissions);
        break;
      case 136:
        attr.damaged = this.#number() !== 0;
        break;
      default:
        this.#isOdd = true;
    }
  }

  #number(): number {
    const value = this.#reader.varint();
    if (value !== UNEXPECTED) return value;
    this.#isOdd = true;
    return 0;
  }

  #big(): bigint {
    const value = this.#number();
    if (value === 0) return 0n;
    if (value !== this.#lastNumber) {
      this.#lastNumber = value;
      this.#lastBig = BigInt(value);
    }
    return this.#lastBig;
  }

  /** The general decoder cuts larger ones to 32 bits. */
  #enumerator(): number {
    const value = this.#number();
    if (value > ENUMERATOR_MAX) this.#isOdd = true;
    return value;
  }

  #fixed32(): number {
    const { at, bytes } = this.#reader;
    this.#reader.at += 4;
    if (this.#reader.at <= this.#end) return bytes.readUInt32LE(at);
    this.#isOdd = true;
    return 0;
  }

  #numbers(into: number[]): void {
    const end = this.#reader.varint() + this.#reader.at;
    if (end < this.#reader.at || end > this.#end) this.#isOdd = true;
    while (this.#reader.at < end && !this.#isOdd) into.push(this.#enumerator());
    if (this.#reader.at !== end) this.#isOdd = true;
  }

  #text(field: number): string {
    const length = this.#reader.varint();
    const { at, bytes } = this.#reader;
    this.#reader.at += length;
    if (length === UNEXPECTED || this.#reader.at > this.#end) {
      this.#isOdd = true;
      return "";
    }
    const last = this.#last?.[field];
    if (last === undefined) return this.#cut(at, length);
    if (length === last.length && isSame(bytes, at, last.at, length)) return last.text;
    last.text = this.#cut(at, length);
    last.at = at;
    last.length = length;
    return last.text;
  }

  #cut(at: number, length: number): string {
    const { bytes } = this.#reader;
    if (isAscii(bytes, at, at + length)) return this.#characters.substring(at, at + length);
    utf8 ??= new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return utf8.decode(bytes.subarray(at, at + length));
  }
}

function isSame(bytes: Buffer, at: number, other: number, length: number): boolean {
  // From the end, where names and ids of neighbours differ.
  for (let index = length - 1; index >= 0; index -= 1) {
    if (bytes[at + index] !== bytes[other + index]) return false;
  }
  return true;
}

function isAscii(bytes: Buffer, from: number, end: number): boolean {
  for (let index = from; index < end; index += 1) {
    if ((bytes[index] ?? 0) > 0x7f) return false;
  }
  return true;
}
