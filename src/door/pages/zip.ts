// The bytes of a zip archive around its files: stored, with zip64 where sizes need it, its length known before.

/** An entry; a folder's name ends in "/". */
export interface ZipEntry {
  readonly name: string;
  readonly size: number;
  readonly crc32: number;
  /** Unix milliseconds. */
  readonly changedMs: number;
}

const MAX_16 = 0xff_ff;
const MAX_32 = 0xff_ff_ff_ff;
const UTF_8 = 0x08_00;
const PLAIN_VERSION = 20;
const ZIP64_VERSION = 45;
/** Made on Unix, so that the modes below count. */
const MADE_BY = 3 << 8;
const FILE_MODE = 0o100_644;
const FOLDER_MODE = 0o040_755;
const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;
const END_BYTES = 22;
const END_64_BYTES = 56 + 20;

/** The header before a file's bytes. */
export function localHeader(entry: ZipEntry): Buffer {
  const name = Buffer.from(entry.name);
  const isLarge = entry.size >= MAX_32;
  const extra = isLarge ? extra64([entry.size, entry.size]) : Buffer.alloc(0);
  const head = Buffer.alloc(LOCAL_BYTES);
  head.writeUInt32LE(0x04_03_4b_50, 0);
  head.writeUInt16LE(isLarge ? ZIP64_VERSION : PLAIN_VERSION, 4);
  writeShared(head, 6, entry);
  const size = Math.min(entry.size, MAX_32);
  head.writeUInt32LE(size, 18);
  head.writeUInt32LE(size, 22);
  head.writeUInt16LE(name.length, 26);
  head.writeUInt16LE(extra.length, 28);
  return Buffer.concat([head, name, extra]);
}

/** The directory's row of an entry whose local header begins at that offset. */
export function centralHeader(entry: ZipEntry, offset: number): Buffer {
  const name = Buffer.from(entry.name);
  const large = [
    ...(entry.size >= MAX_32 ? [entry.size, entry.size] : []),
    ...(offset >= MAX_32 ? [offset] : []),
  ];
  const extra = large.length > 0 ? extra64(large) : Buffer.alloc(0);
  const version = large.length > 0 ? ZIP64_VERSION : PLAIN_VERSION;
  const head = Buffer.alloc(CENTRAL_BYTES);
  head.writeUInt32LE(0x02_01_4b_50, 0);
  head.writeUInt16LE(MADE_BY | version, 4);
  head.writeUInt16LE(version, 6);
  writeShared(head, 8, entry);
  const size = Math.min(entry.size, MAX_32);
  head.writeUInt32LE(size, 20);
  head.writeUInt32LE(size, 24);
  head.writeUInt16LE(name.length, 28);
  head.writeUInt16LE(extra.length, 30);
  const mode = entry.name.endsWith("/") ? FOLDER_MODE : FILE_MODE;
  head.writeUInt32LE((mode * 0x1_00_00 + (entry.name.endsWith("/") ? 0x10 : 0)) >>> 0, 38);
  head.writeUInt32LE(Math.min(offset, MAX_32), 42);
  return Buffer.concat([head, name, extra]);
}

/** The end of an archive with so many entries, whose directory lies there. */
export function endOf(
  entries: number,
  directory: { readonly offset: number; readonly bytes: number },
): Buffer {
  const { offset, bytes } = directory;
  const end = Buffer.alloc(END_BYTES);
  end.writeUInt32LE(0x06_05_4b_50, 0);
  end.writeUInt16LE(Math.min(entries, MAX_16), 8);
  end.writeUInt16LE(Math.min(entries, MAX_16), 10);
  end.writeUInt32LE(Math.min(bytes, MAX_32), 12);
  end.writeUInt32LE(Math.min(offset, MAX_32), 16);
  if (!needs64(entries, offset + bytes)) return end;
  const large = Buffer.alloc(END_64_BYTES);
  large.writeUInt32LE(0x06_06_4b_50, 0);
  large.writeBigUInt64LE(44n, 4);
  large.writeUInt16LE(MADE_BY | ZIP64_VERSION, 12);
  large.writeUInt16LE(ZIP64_VERSION, 14);
  large.writeBigUInt64LE(BigInt(entries), 24);
  large.writeBigUInt64LE(BigInt(entries), 32);
  large.writeBigUInt64LE(BigInt(bytes), 40);
  large.writeBigUInt64LE(BigInt(offset), 48);
  large.writeUInt32LE(0x07_06_4b_50, 56);
  large.writeBigUInt64LE(BigInt(offset + bytes), 64);
  large.writeUInt32LE(1, 72);
  return Buffer.concat([large, end]);
}

/** The length of the whole archive. */
export function archiveBytes(entries: Iterable<ZipEntry>): number {
  let offset = 0;
  let directory = 0;
  let count = 0;
  for (const entry of entries) {
    directory += centralHeader(entry, offset).length;
    offset += localHeader(entry).length + entry.size;
    count++;
  }
  return offset + directory + endOf(count, { offset, bytes: directory }).length;
}

function needs64(entries: number, endOffset: number): boolean {
  return entries >= MAX_16 || endOffset >= MAX_32;
}

/** Flags, method, time and checksum, which both headers have one after the other. */
function writeShared(head: Buffer, at: number, { crc32, changedMs }: ZipEntry): void {
  head.writeUInt16LE(UTF_8, at);
  head.writeUInt16LE(0, at + 2);
  const { date, time } = dosTime(changedMs);
  head.writeUInt16LE(time, at + 4);
  head.writeUInt16LE(date, at + 6);
  head.writeUInt32LE(crc32 >>> 0, at + 8);
}

function extra64(values: readonly number[]): Buffer {
  const extra = Buffer.alloc(4 + 8 * values.length);
  extra.writeUInt16LE(1, 0);
  extra.writeUInt16LE(8 * values.length, 2);
  for (const [index, value] of values.entries()) extra.writeBigUInt64LE(BigInt(value), 4 + 8 * index);
  return extra;
}

/** Times of zip have two seconds' grain and begin in 1980. */
function dosTime(wallMs: number): { readonly date: number; readonly time: number } {
  const at = new Date(Math.min(Math.max(wallMs, Date.UTC(1980, 0, 1)), Date.UTC(2107, 11, 31)));
  const date = ((at.getUTCFullYear() - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate();
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  return { date, time };
}
