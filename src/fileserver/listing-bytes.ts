// Encodes the entries of a listing straight into bytes: what a thousand Attr messages would become, at a third of the work.
import { LIST_REPLY_MAX_BYTES, NAME_MAX_BYTES, USERNAME_MAX_LENGTH } from "#base/limits.ts";
import { type Attr, Kind } from "#proto/gen/grove/v1/common_pb.ts";
import { etagOf, type Inode, type InodeId, inodeIdText } from "#storage/inode.ts";
import type { ListPage } from "#storage/storage.ts";
import type { AttrScope } from "./attr-message.ts";

/** Bytes of an entry beside its name, its path and what all entries share; numbers take ten at most. */
const FIXED_MAX_BYTES = 192;
/** A character of JavaScript is at most three bytes of UTF-8. */
const BYTES_PER_CHARACTER = 3;
const TWO_POW_31 = 2 ** 31;
/** Below this length a loop writes text faster than a call into Node does. */
const SHORT_TEXT = 24;

/** Tag and length of a text of the Attr. */
const TEXT_HEAD_MAX_BYTES = 4;

const WIRE_VARINT = 0;
const WIRE_BYTES = 2;
const WIRE_FIXED32 = 5;

/** Fields of Attr by number (proto/grove/v1/common.proto). */
const FIELD = {
  id: 1,
  name: 2,
  path: 3,
  kind: 4,
  size: 5,
  mtimeMs: 6,
  ctimeMs: 7,
  owner: 8,
  shared: 9,
  etag: 10,
  crc32: 11,
  childCount: 12,
  root: 13,
  parentId: 14,
  createdBy: 15,
  myPermissions: 16,
  damaged: 17,
} as const satisfies Record<Exclude<keyof Attr, "$typeName" | "$unknown">, number>;

/** A repeated field's elements as protobuf keeps what it has not taken apart: the bytes that follow the first element's tag. */
export interface EncodedEntries {
  readonly no: number;
  readonly wireType: number;
  readonly data: Uint8Array;
}

/**
 * The entries of one directory as the elements of a repeated Attr with the given field number; nothing for none. Decodes to what
 * attrMessage would give: entries are shared with whom their directory is, and by grants of their own.
 */
export function encodeEntries(
  page: Pick<ListPage, "entries" | "shared">,
  directoryPath: string,
  scope: AttrScope,
  fieldNumber: number,
): EncodedEntries[] {
  const { entries } = page;
  if (entries.length === 0) return [];
  const writer = new ListingWriter(page, directoryPath, scope);
  const elementTag = fieldNumber * 8 + WIRE_BYTES;
  for (const [index, inode] of entries.entries()) {
    if (index > 0) writer.varint(elementTag);
    writer.entry(inode);
  }
  return [{ no: fieldNumber, wireType: WIRE_BYTES, data: writer.written() }];
}

/** Bytes of a listing's reply that an entry may take beside its directory's path and the users that it inherits: two names, an address, numbers. */
const ENTRY_MAX_BYTES = 2 * NAME_MAX_BYTES + USERNAME_MAX_LENGTH + FIXED_MAX_BYTES;

/** How many entries fit into one reply that every stock client takes, when each carries this path and these users. */
export function entriesPerReply(directoryPath: string, shared: readonly string[]): number {
  let eachBytes = ENTRY_MAX_BYTES + Buffer.byteLength(directoryPath);
  for (const user of shared) eachBytes += Buffer.byteLength(user) + TEXT_HEAD_MAX_BYTES;
  return Math.max(1, Math.floor(LIST_REPLY_MAX_BYTES / eachBytes));
}

/** Writes entries one after another into a buffer that is large enough for all of them. */
class ListingWriter {
  readonly #buffer: Buffer;
  readonly #directoryPrefix: Buffer;
  /** What is the same in every entry of a page: owner, root, parent, permissions. */
  readonly #common: Buffer;
  /** Users whom an entry without grants of its own inherits from its directory. */
  readonly #inherited: Buffer;
  /** Users of the others, inherited ones included. */
  readonly #shared: ReadonlyMap<InodeId, readonly string[]>;
  #at = 0;

  constructor(
    { entries, shared }: Pick<ListPage, "entries" | "shared">,
    directoryPath: string,
    scope: AttrScope,
  ) {
    this.#directoryPrefix = Buffer.from(directoryPath === "/" ? "/" : `${directoryPath}/`);
    const parentId = entries[0]?.parentId;
    this.#shared = new Map([...shared].map(([id, own]) => [id, union(scope.shared, own)]));
    this.#buffer = Buffer.allocUnsafe(
      64 + 2 * BYTES_PER_CHARACTER * scope.owner.length + maxBytesOf(scope.shared),
    );
    for (const user of scope.shared) this.#text(FIELD.shared, user);
    this.#inherited = Buffer.from(this.#buffer.subarray(0, this.#at));
    this.#at = 0;
    this.#text(FIELD.owner, scope.owner);
    this.#text(FIELD.root, scope.owner);
    if (parentId !== undefined) this.#text(FIELD.parentId, inodeIdText(parentId));
    if (scope.permissions.length > 0) {
      this.#tag(FIELD.myPermissions, WIRE_BYTES);
      this.varint(scope.permissions.length);
      for (const permission of scope.permissions) this.varint(permission);
    }
    this.#common = Buffer.from(this.#buffer.subarray(0, this.#at));
    this.#at = 0;
    let totalBytes = 0;
    for (const users of this.#shared.values()) totalBytes += maxBytesOf(users);
    for (const inode of entries) {
      totalBytes += BYTES_PER_CHARACTER * (2 * inode.name.length + inode.createdBy.length) + FIXED_MAX_BYTES;
    }
    this.#buffer = Buffer.allocUnsafe(
      totalBytes +
        entries.length * (this.#directoryPrefix.length + this.#common.length + this.#inherited.length),
    );
  }

  /** What has been written. */
  written(): Uint8Array {
    return this.#buffer.subarray(0, this.#at);
  }

  /** Length and content of one entry. */
  entry(inode: Inode): void {
    // Room for a length of three bytes, which is written when it is known: padded varints are legal, and every decoder takes them.
    const lengthAt = this.#at;
    this.#at += 3;
    this.#text(FIELD.id, inodeIdText(inode.id));
    const nameAt = this.#text(FIELD.name, inode.name);
    const nameBytes = this.#at - nameAt;
    this.#tag(FIELD.path, WIRE_BYTES);
    this.varint(this.#directoryPrefix.length + nameBytes);
    this.#bytes(this.#directoryPrefix);
    this.#buffer.copyWithin(this.#at, nameAt, nameAt + nameBytes);
    this.#at += nameBytes;
    this.#number(FIELD.kind, inode.kind === "file" ? Kind.FILE : Kind.DIRECTORY);
    this.#number(FIELD.size, inode.sizeBytes);
    this.#number(FIELD.mtimeMs, inode.mtimeMs);
    this.#number(FIELD.ctimeMs, inode.ctimeMs);
    this.#text(FIELD.etag, etagOf(inode));
    if (inode.crc32 !== 0) {
      this.#tag(FIELD.crc32, WIRE_FIXED32);
      this.#at = this.#buffer.writeUInt32LE(inode.crc32, this.#at);
    }
    this.#number(FIELD.childCount, inode.childCount);
    this.#text(FIELD.createdBy, inode.createdBy);
    this.#number(FIELD.damaged, inode.damaged ? 1 : 0);
    this.#bytes(this.#common);
    const users = this.#shared.get(inode.id);
    if (users === undefined) this.#bytes(this.#inherited);
    else for (const user of users) this.#text(FIELD.shared, user);
    const length = this.#at - lengthAt - 3;
    this.#buffer[lengthAt] = (length & 127) | 128;
    this.#buffer[lengthAt + 1] = ((length >> 7) & 127) | 128;
    this.#buffer[lengthAt + 2] = length >> 14;
  }

  /** A number from 0 to 2^53 - 1, or a negative one as the ten bytes of its 64-bit complement. */
  varint(value: number): void {
    if (value < 0) return this.#negative(value);
    let left = value;
    while (left >= TWO_POW_31) {
      this.#buffer[this.#at++] = (left % 128) | 128;
      left = Math.floor(left / 128);
    }
    while (left > 127) {
      this.#buffer[this.#at++] = (left & 127) | 128;
      left >>>= 7;
    }
    this.#buffer[this.#at++] = left;
    return undefined;
  }

  #negative(value: number): void {
    let left = BigInt.asUintN(64, BigInt(value));
    while (left > 127n) {
      this.#buffer[this.#at++] = Number(left & 127n) | 128;
      left >>= 7n;
    }
    this.#buffer[this.#at++] = Number(left);
  }

  #tag(field: number, wireType: number): void {
    this.varint(field * 8 + wireType);
  }

  /** A number field; zero is not written. */
  #number(field: number, value: number): void {
    if (value === 0) return;
    this.#tag(field, WIRE_VARINT);
    this.varint(value);
  }

  /** A text field and where its bytes begin; an empty one is not written. */
  #text(field: number, text: string): number {
    if (text === "") return this.#at;
    this.#tag(field, WIRE_BYTES);
    if (text.length <= SHORT_TEXT && this.#shortAscii(text)) return this.#at - text.length;
    const byteLength = Buffer.byteLength(text);
    this.varint(byteLength);
    const textAt = this.#at;
    this.#at += this.#buffer.write(text, this.#at);
    return textAt;
  }

  /** Writes the length and the text when all of it is ASCII; else leaves no trace. */
  #shortAscii(text: string): boolean {
    const start = this.#at;
    this.#buffer[this.#at++] = text.length;
    for (let i = 0; i < text.length; i++) {
      const character = text.charCodeAt(i);
      if (character > 127) {
        this.#at = start;
        return false;
      }
      this.#buffer[this.#at++] = character;
    }
    return true;
  }

  #bytes(bytes: Buffer): void {
    this.#buffer.set(bytes, this.#at);
    this.#at += bytes.length;
  }
}

function union(inherited: readonly string[], own: readonly string[]): string[] {
  return [...new Set([...inherited, ...own])].toSorted();
}

function maxBytesOf(users: readonly string[]): number {
  return users.length * TEXT_HEAD_MAX_BYTES + BYTES_PER_CHARACTER * users.join("").length;
}
