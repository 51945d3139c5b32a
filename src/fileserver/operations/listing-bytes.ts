// Encodes a listing's entries straight into bytes, at a third of the work of a thousand Attr messages.
import { NAME_MAX_BYTES, USERNAME_MAX_LENGTH } from "#base/limits.ts";
import { type Inode, type InodeId, inodeIdText } from "#storage/contract/inode.ts";
import type { ListPage, OwnShares } from "#storage/contract/storage.ts";
import { type Attr, Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { AttrScope } from "./attr-message.ts";

/** Bytes of a ListDir reply, below the 4,194,304 of stock clients; deep or widely shared ones are shorter. */
const LIST_REPLY_MAX_BYTES = 4_000_000;

/** Bytes of an entry beside its name, its path and the shared fields; numbers take ten at most. */
const FIXED_MAX_BYTES = 192;
/** A character of JavaScript is at most three bytes of UTF-8. */
const BYTES_PER_CHARACTER = 3;
const TWO_POW_28 = 2 ** 28;
/** Below this length a loop writes text faster than a call into Node does. */
const SHORT_TEXT = 24;
const DIGITS: Buffer = Buffer.from("0123456789abcdefghijklmnopqrstuvwxyz");
const HYPHEN = 0x2d;

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

/** Fields of ListDirResponse by number (proto/grove/v1/file_server.proto). */
const ENTRIES_FIELD = 1;
const TOKEN_FIELD = 2;

/**
 * The ListDirResponse of one page of a directory, after `headBytes` bytes of free room. It decodes to
 * attrMessage's result for each entry: entries inherit the directory's sharees, add their own grants and
 * subtract their own exclusions.
 */
export function encodeListing(
  page: ListPage,
  directoryPath: string,
  scope: AttrScope,
  headBytes: number,
): Buffer {
  return new ListingWriter(page, directoryPath, scope, headBytes).write(page);
}

/** Reply bytes of an entry beside its directory's path and inherited users: two names, address, numbers. */
const ENTRY_MAX_BYTES = 2 * NAME_MAX_BYTES + USERNAME_MAX_LENGTH + FIXED_MAX_BYTES;

/** Entries that fit into one reply for every stock client, when each carries this path and these users. */
export function entriesPerReply(directoryPath: string, shared: readonly string[]): number {
  let eachBytes = ENTRY_MAX_BYTES + Buffer.byteLength(directoryPath);
  for (const user of shared) eachBytes += Buffer.byteLength(user) + TEXT_HEAD_MAX_BYTES;
  return Math.max(1, Math.floor(LIST_REPLY_MAX_BYTES / eachBytes));
}

/** The fields that many entries share, written once and copied into each. */
class SharedBytes {
  readonly directoryPrefix: Buffer;
  /** Owner, root, parent and permissions, which all entries of a page have. */
  readonly common: Buffer;
  /** The common fields with the owner as creator and the inherited users: nearly every entry. */
  readonly usual: Buffer;

  constructor(parentId: InodeId | undefined, directoryPath: string, scope: AttrScope) {
    this.directoryPrefix = Buffer.from(directoryPath === "/" ? "/" : `${directoryPath}/`);
    const owner = BYTES_PER_CHARACTER * scope.owner.length;
    const writer = new ByteWriter(Buffer.allocUnsafe(128 + 3 * owner + maxBytesOf(scope.shared)));
    writer.text(FIELD.owner, scope.owner);
    writer.text(FIELD.root, scope.owner);
    if (parentId !== undefined) writer.text(FIELD.parentId, inodeIdText(parentId));
    if (scope.permissions.length > 0) {
      writer.tag(FIELD.myPermissions, WIRE_BYTES);
      writer.varint(scope.permissions.length);
      for (const permission of scope.permissions) writer.varint(permission);
    }
    this.common = Buffer.from(writer.written());
    writer.text(FIELD.createdBy, scope.owner);
    for (const user of scope.shared) writer.text(FIELD.shared, user);
    this.usual = Buffer.from(writer.written());
  }
}

/** Writes the entries one after another into a buffer with room for all of them. */
class ListingWriter {
  readonly #out: ByteWriter;
  readonly #scope: AttrScope;
  readonly #same: SharedBytes;
  /** Users of entries with grants or exclusions of their own, inherited ones included. */
  readonly #shared: ReadonlyMap<InodeId, readonly string[]>;

  constructor(page: ListPage, directoryPath: string, scope: AttrScope, headBytes: number) {
    const { entries, own, nextPageToken = "" } = page;
    this.#scope = scope;
    this.#same = new SharedBytes(entries[0]?.parentId, directoryPath, scope);
    this.#shared = new Map([...own].map(([id, rows]) => [id, usersOf(scope.shared, rows)]));
    let totalBytes =
      headBytes + TEXT_HEAD_MAX_BYTES + BYTES_PER_CHARACTER * nextPageToken.length + scope.owner.length;
    for (const users of this.#shared.values()) totalBytes += maxBytesOf(users);
    for (const inode of entries) {
      totalBytes += BYTES_PER_CHARACTER * (2 * inode.name.length + inode.createdBy.length) + FIXED_MAX_BYTES;
    }
    totalBytes += entries.length * (this.#same.directoryPrefix.length + this.#same.usual.length);
    this.#out = new ByteWriter(Buffer.allocUnsafe(totalBytes), headBytes);
  }

  write({ entries, nextPageToken = "" }: ListPage): Buffer {
    for (const inode of entries) this.#entry(inode);
    this.#out.text(TOKEN_FIELD, nextPageToken);
    return this.#out.written();
  }

  /** One element of the repeated field. */
  #entry(inode: Inode): void {
    const out = this.#out;
    out.tag(ENTRIES_FIELD, WIRE_BYTES);
    // Room for a three-byte length, written later: padded varints are legal, and every decoder takes them.
    const lengthAt = out.skip(3);
    const idAt = out.base36(FIELD.id, inode.id);
    const idBytes = out.at - idAt;
    const nameAt = out.text(FIELD.name, inode.name);
    const nameBytes = out.at - nameAt;
    const { directoryPrefix, common, usual } = this.#same;
    out.tag(FIELD.path, WIRE_BYTES);
    out.varint(directoryPrefix.length + nameBytes);
    out.bytes(directoryPrefix);
    out.again(nameAt, nameBytes);
    out.number(FIELD.kind, inode.kind === "file" ? Kind.FILE : Kind.DIRECTORY);
    out.number(FIELD.size, inode.sizeBytes);
    out.number(FIELD.mtimeMs, inode.mtimeMs);
    out.number(FIELD.ctimeMs, inode.ctimeMs);
    out.etag(idAt, idBytes, inode.version);
    if (inode.crc32 !== 0) out.fixed32(FIELD.crc32, inode.crc32);
    out.number(FIELD.childCount, inode.childCount);
    out.number(FIELD.damaged, inode.damaged ? 1 : 0);
    const own = this.#shared.get(inode.id);
    if (own === undefined && inode.createdBy === this.#scope.owner) {
      out.bytes(usual);
    } else {
      out.bytes(common);
      out.text(FIELD.createdBy, inode.createdBy);
      for (const user of own ?? this.#scope.shared) out.text(FIELD.shared, user);
    }
    out.length3(lengthAt);
  }
}

/** Writes fields one after another into a buffer that its caller has made large enough. */
class ByteWriter {
  readonly #buffer: Buffer;
  at: number;

  constructor(buffer: Buffer, at = 0) {
    this.#buffer = buffer;
    this.at = at;
  }

  /** All bytes written so far. */
  written(): Buffer {
    return this.#buffer.subarray(0, this.at);
  }

  /** Leaves room and returns its place. */
  skip(count: number): number {
    const { at } = this;
    this.at = at + count;
    return at;
  }

  /** Writes the length of the bytes after a three-byte room. */
  length3(lengthAt: number): void {
    const length = this.at - lengthAt - 3;
    this.#buffer[lengthAt] = (length & 127) | 128;
    this.#buffer[lengthAt + 1] = ((length >> 7) & 127) | 128;
    this.#buffer[lengthAt + 2] = length >> 14;
  }

  /** A number from 0 to 2^53 - 1, or a negative one as the ten bytes of its 64-bit complement. */
  varint(value: number): void {
    if (value < 0) return this.#negative(value);
    const buffer = this.#buffer;
    let { at } = this;
    let left = value;
    if (left >= TWO_POW_28) {
      // Times are such numbers: four bytes in 32-bit integers, then the rest.
      const high = Math.floor(left / TWO_POW_28);
      const low = left - high * TWO_POW_28;
      buffer[at] = (low & 127) | 128;
      buffer[at + 1] = ((low >> 7) & 127) | 128;
      buffer[at + 2] = ((low >> 14) & 127) | 128;
      buffer[at + 3] = (low >> 21) | 128;
      at += 4;
      left = high;
    }
    while (left > 127) {
      buffer[at++] = (left & 127) | 128;
      left >>>= 7;
    }
    buffer[at] = left;
    this.at = at + 1;
    return undefined;
  }

  tag(field: number, wireType: number): void {
    this.varint(field * 8 + wireType);
  }

  /** A number field; zero is not written. */
  number(field: number, value: number): void {
    if (value === 0) return;
    this.varint(field * 8 + WIRE_VARINT);
    this.varint(value);
  }

  fixed32(field: number, value: number): void {
    this.varint(field * 8 + WIRE_FIXED32);
    const buffer = this.#buffer;
    const { at } = this;
    buffer[at] = value;
    buffer[at + 1] = value >>> 8;
    buffer[at + 2] = value >>> 16;
    buffer[at + 3] = value >>> 24;
    this.at = at + 4;
  }

  /** Writes a text field and returns where its bytes begin; skips an empty one. */
  text(field: number, text: string): number {
    if (text === "") return this.at;
    this.varint(field * 8 + WIRE_BYTES);
    if (text.length <= SHORT_TEXT && this.#shortAscii(text)) return this.at - text.length;
    this.varint(Buffer.byteLength(text));
    const { at } = this;
    this.at = at + this.#buffer.write(text, at);
    return at;
  }

  /** Writes a text field with a number in base 36 and returns where its bytes begin. */
  base36(field: number, value: number): number {
    this.varint(field * 8 + WIRE_BYTES);
    const at = this.at + 1;
    this.at = this.#digits(at, value);
    this.#buffer[at - 1] = this.at - at;
    return at;
  }

  /** The etag of a version of the inode whose id is already written at a place (etagOf). */
  etag(idAt: number, idBytes: number, version: number): void {
    this.varint(FIELD.etag * 8 + WIRE_BYTES);
    const lengthAt = this.skip(1);
    this.again(idAt, idBytes);
    this.#buffer[this.at] = HYPHEN;
    this.at = this.#digits(this.at + 1, version);
    this.#buffer[lengthAt] = this.at - lengthAt - 1;
  }

  /** Copies bytes that are already written. */
  again(from: number, count: number): void {
    const buffer = this.#buffer;
    const { at } = this;
    if (count <= SHORT_TEXT) {
      for (let i = 0; i < count; i++) buffer[at + i] = buffer[from + i] as number;
    } else {
      buffer.copyWithin(at, from, from + count);
    }
    this.at = at + count;
  }

  bytes(bytes: Buffer): void {
    const { at } = this;
    if (bytes.length <= SHORT_TEXT) {
      for (let i = 0; i < bytes.length; i++) this.#buffer[at + i] = bytes[i] as number;
    } else {
      this.#buffer.set(bytes, at);
    }
    this.at = at + bytes.length;
  }

  /** Writes a number in base 36 (inodeIdText) and returns its end. */
  #digits(at: number, value: number): number {
    let end = at + 1;
    for (let bound = 36; bound <= value; bound *= 36) end++;
    let left = value;
    let i = end - 1;
    for (; left >= TWO_POW_28; i--) {
      const rest = Math.floor(left / 36);
      this.#buffer[i] = DIGITS[left - rest * 36] as number;
      left = rest;
    }
    for (; i >= at; i--) {
      const rest = (left / 36) | 0;
      this.#buffer[i] = DIGITS[left - rest * 36] as number;
      left = rest;
    }
    return end;
  }

  #negative(value: number): void {
    let left = BigInt.asUintN(64, BigInt(value));
    while (left > 127n) {
      this.#buffer[this.at++] = Number(left & 127n) | 128;
      left >>= 7n;
    }
    this.#buffer[this.at++] = Number(left);
  }

  /** Writes length and text when all of it is ASCII; otherwise its bytes do not count. */
  #shortAscii(text: string): boolean {
    const buffer = this.#buffer;
    const { length } = text;
    const from = this.at + 1;
    for (let i = 0; i < length; i++) {
      const character = text.charCodeAt(i);
      if (character > 127) return false;
      buffer[from + i] = character;
    }
    buffer[from - 1] = length;
    this.at = from + length;
    return true;
  }
}

function usersOf(inherited: readonly string[], { shared, excluded }: OwnShares): string[] {
  const users = new Set([...inherited, ...shared]);
  for (const user of excluded) users.delete(user);
  return [...users].toSorted();
}

function maxBytesOf(users: readonly string[]): number {
  return users.length * TEXT_HEAD_MAX_BYTES + BYTES_PER_CHARACTER * users.join("").length;
}
