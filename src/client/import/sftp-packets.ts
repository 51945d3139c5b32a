// Packets of the SSH File Transfer Protocol, version 3: written by hand, read within bounds.

/** Types of packets that are sent or read. */
export const SFTP = {
  init: 1,
  version: 2,
  open: 3,
  close: 4,
  read: 5,
  lstat: 7,
  opendir: 11,
  readdir: 12,
  realpath: 16,
  stat: 17,
  status: 101,
  handle: 102,
  data: 103,
  name: 104,
  attrs: 105,
} as const;

/** Codes of a status. */
export const SFTP_STATUS = { ok: 0, eof: 1, noSuchFile: 2, permissionDenied: 3 } as const;

/** Longest packet that is read: OpenSSH's own bound is 256 KiB. */
export const SFTP_PACKET_MAX_BYTES: number = 512 * 1024;

/** Attributes of a file; undefined where the server tells none. */
export interface SftpAttributes {
  readonly sizeBytes: number | undefined;
  readonly mode: number | undefined;
  readonly mtimeSeconds: number | undefined;
}

/** Builds the body of a packet. */
export class PacketWriter {
  readonly #parts: Buffer[] = [];

  uint32(value: number): this {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    this.#parts.push(bytes);
    return this;
  }

  uint64(value: number): this {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(value));
    this.#parts.push(bytes);
    return this;
  }

  text(value: string | Buffer): this {
    const bytes = typeof value === "string" ? Buffer.from(value) : value;
    this.#parts.push(this.uint32(bytes.length).#parts.pop() as Buffer, bytes);
    return this;
  }

  /** The packet with its length, its type and what was written. */
  packet(type: number): Buffer {
    const body = Buffer.concat(this.#parts);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length + 1);
    head.writeUInt8(type, 4);
    return Buffer.concat([head, body]);
  }
}

/** Reads the body of a packet. Throws RangeError past its end. */
export class PacketReader {
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  uint32(): number {
    const value = this.#body.readUInt32BE(this.#at);
    this.#at += 4;
    return value;
  }

  uint64(): number {
    const value = this.#body.readBigUInt64BE(this.#at);
    this.#at += 8;
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError("a number beyond 2^53");
    return Number(value);
  }

  bytes(): Buffer {
    const length = this.uint32();
    const end = this.#at + length;
    if (end > this.#body.length) throw new RangeError("a text that is longer than its packet");
    const bytes = this.#body.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  attributes(): SftpAttributes {
    const flags = this.uint32();
    const sizeBytes = (flags & 0x1) === 0 ? undefined : this.uint64();
    if ((flags & 0x2) !== 0) this.#at += 8;
    const mode = (flags & 0x4) === 0 ? undefined : this.uint32();
    let mtimeSeconds: number | undefined;
    if ((flags & 0x8) !== 0) {
      this.#at += 4;
      mtimeSeconds = this.uint32();
    }
    if ((flags & 0x80000000) !== 0) {
      for (let left = this.uint32(); left > 0; left--) {
        this.bytes();
        this.bytes();
      }
    }
    return { sizeBytes, mode, mtimeSeconds };
  }
}

/** Cuts a stream of bytes into packets. */
export class PacketCutter {
  #rest: Buffer[] = [];
  #restBytes = 0;

  /** The packets that are whole now. Throws RangeError for one that is too long. */
  take(piece: Buffer): { readonly type: number; readonly body: Buffer }[] {
    this.#rest.push(piece);
    this.#restBytes += piece.length;
    const packets: { type: number; body: Buffer }[] = [];
    for (;;) {
      if (this.#restBytes < 5) return packets;
      const length = this.#peek(4).readUInt32BE(0);
      if (length < 1 || length > SFTP_PACKET_MAX_BYTES)
        throw new RangeError("a packet of an impossible length");
      if (this.#restBytes < length + 4) return packets;
      const all = this.#peek(length + 4);
      packets.push({ type: all.readUInt8(4), body: all.subarray(5, length + 4) });
      const over = all.subarray(length + 4);
      this.#rest[0] = over;
      this.#restBytes -= length + 4;
      if (over.length === 0) this.#rest.shift();
    }
  }

  /** The first buffer of the rest, with at least so many bytes. */
  #peek(bytes: number): Buffer {
    const [first] = this.#rest;
    if (first !== undefined && first.length >= bytes) return first;
    const joined = Buffer.concat(this.#rest);
    this.#rest = [joined];
    return joined;
  }
}
