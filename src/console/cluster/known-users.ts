// Rereads a map that lists the same users without parsing it, because most users have not changed.
import type { UserDetail } from "./cluster-state.ts";
import type { UserValues } from "./user-values.ts";

/** Reads one user's value at the scan's position: `before` if unchanged, undefined for another layout. */
export type ValueScan<V extends object | bigint> = (scan: Scan, before: V) => V | undefined;

const [QUOTE, COMMA, COLON, CLOSING_BRACE] = [0x22, 0x2c, 0x3a, 0x7d];
const [ZERO, NINE] = [0x30, 0x39];
const [BACKSLASH, TILDE] = [0x5c, 0x7e];
/** All numbers with up to this many digits are exact. */
const DIGITS_MAX = 15;

/**
 * Reads a map from after its opening brace through its closing one; the same object as before while
 * unchanged. Undefined for another layout, other users or another order, which need a parser.
 */
export function rereadUsers<V extends object | bigint>(
  bytes: Buffer,
  start: number,
  before: UserValues<V>,
  valueAt: ValueScan<V>,
): UserValues<V> | undefined {
  const scan = new Scan(bytes, start);
  const { names } = before;
  let changed: V[] | undefined;
  for (let place = 0; place < names.length; place++) {
    if (place > 0 && !scan.byte(COMMA)) return undefined;
    const username = names[place] as string;
    if (!scan.byte(QUOTE) || !scan.name(username) || !scan.byte(QUOTE) || !scan.byte(COLON)) return undefined;
    const known = before.at(place) as V;
    const value = valueAt(scan, known);
    if (value === undefined) return undefined;
    if (value !== known) {
      changed ??= before.copy();
      changed[place] = value;
    }
  }
  if (!scan.byte(CLOSING_BRACE) || !scan.isAtEnd) return undefined;
  return changed === undefined ? before : before.with(changed);
}

/** A position in the bytes of a document. A mismatch ends the reading. */
export class Scan {
  readonly #bytes: Buffer;
  #at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  /** True after the last byte. */
  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Steps over one byte; false at a mismatch. */
  byte(expected: number): boolean {
    if (this.#bytes[this.#at] !== expected) return false;
    this.#at++;
    return true;
  }

  /** Steps over these bytes; false at a mismatch. */
  literal(expected: Uint8Array): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    const { length } = expected;
    for (let index = 0; index < length; index++) {
      if (bytes[at + index] !== expected[index]) return false;
    }
    this.#at = at + length;
    return true;
  }

  /**
   * Steps over a name; false at a mismatch, and for names that need escapes or several bytes per character.
   */
  name(expected: string): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    const { length } = expected;
    for (let index = 0; index < length; index++) {
      const byte = bytes[at + index];
      if (byte !== expected.charCodeAt(index) || byte > TILDE || byte === QUOTE || byte === BACKSLASH)
        return false;
    }
    this.#at = at + length;
    return true;
  }

  /** Steps over a whole number from 0 up and returns it; NaN for none, or for more than 15 digits. */
  count(): number {
    const bytes = this.#bytes;
    const start = this.#at;
    let at = start;
    let value = 0;
    for (;;) {
      const byte = bytes[at];
      if (byte === undefined || byte < ZERO || byte > NINE) break;
      value = value * 10 + (byte - ZERO);
      at++;
    }
    this.#at = at;
    const digits = at - start;
    const isWritten = digits === 1 || (digits > 1 && bytes[start] !== ZERO);
    return isWritten && digits <= DIGITS_MAX ? value : Number.NaN;
  }
}

/** A count of 64 bits. */
export const countAt: ValueScan<bigint> = (scan, before) => {
  const value = scan.count();
  if (Number.isNaN(value)) return undefined;
  return Number(before) === value ? before : BigInt(value);
};

const [LIVE, TRASH, STAGING, FILES, INODES, INODE_LIMIT, LIMIT_EXPLICIT, ACTIVE, EXPLICIT] = [
  Buffer.from('{"live_bytes":'),
  Buffer.from(',"trash_bytes":'),
  Buffer.from(',"staging_bytes":'),
  Buffer.from(',"file_count":'),
  Buffer.from(',"inode_count":'),
  Buffer.from(',"inode_limit":'),
  Buffer.from(',"inode_limit_explicit":'),
  Buffer.from(',"last_active_unix":'),
  Buffer.from(',"quota_explicit":'),
] as const;
const [NULL, TRUE, FALSE] = [Buffer.from("null"), Buffer.from("true"), Buffer.from("false")];

/** A user's detail with its fields in the nodes' order; nodes without inode limits leave three out. */
export const detailAt: ValueScan<UserDetail> = (scan, before) => {
  const liveBytes = bytesBehind(scan, LIVE, before.liveBytes);
  const trashBytes = bytesBehind(scan, TRASH, before.trashBytes);
  const stagingBytes = bytesBehind(scan, STAGING, before.stagingBytes);
  if (liveBytes === undefined || trashBytes === undefined || stagingBytes === undefined) return undefined;
  const fileCount = scan.literal(FILES) ? scan.count() : Number.NaN;
  const inodes = Number.isNaN(fileCount) ? undefined : inodesAt(scan);
  if (inodes === undefined || !scan.literal(ACTIVE)) return undefined;
  const lastActiveUnix = scan.literal(NULL) ? null : scan.count();
  if (Number.isNaN(lastActiveUnix) || !scan.literal(EXPLICIT)) return undefined;
  const quotaExplicit = flagAt(scan);
  if (quotaExplicit === undefined || !scan.byte(CLOSING_BRACE)) return undefined;
  const isSame =
    liveBytes === before.liveBytes &&
    trashBytes === before.trashBytes &&
    stagingBytes === before.stagingBytes &&
    fileCount === before.fileCount &&
    inodes.inodeCount === before.inodeCount &&
    inodes.inodeLimit === before.inodeLimit &&
    inodes.inodeLimitExplicit === before.inodeLimitExplicit &&
    lastActiveUnix === before.lastActiveUnix &&
    quotaExplicit === before.quotaExplicit;
  if (isSame) return before;
  return { liveBytes, trashBytes, stagingBytes, fileCount, ...inodes, lastActiveUnix, quotaExplicit };
};

type Inodes = Pick<UserDetail, "inodeCount" | "inodeLimit" | "inodeLimitExplicit">;

const NO_INODES: Inodes = { inodeCount: null, inodeLimit: null, inodeLimitExplicit: null };

function inodesAt(scan: Scan): Inodes | undefined {
  if (!scan.literal(INODES)) return NO_INODES;
  const inodeCount = scan.count();
  const inodeLimit = scan.literal(INODE_LIMIT) ? scan.count() : Number.NaN;
  if (Number.isNaN(inodeCount) || Number.isNaN(inodeLimit) || !scan.literal(LIMIT_EXPLICIT)) return undefined;
  const inodeLimitExplicit = flagAt(scan);
  return inodeLimitExplicit === undefined ? undefined : { inodeCount, inodeLimit, inodeLimitExplicit };
}

function flagAt(scan: Scan): boolean | undefined {
  if (scan.literal(TRUE)) return true;
  return scan.literal(FALSE) ? false : undefined;
}

function bytesBehind(scan: Scan, key: Uint8Array, before: bigint | null): bigint | undefined {
  return scan.literal(key) ? countAt(scan, before ?? UNKNOWN) : undefined;
}

/** A value that no count has. */
const UNKNOWN = -1n;
