// One map of users in a node's document: read only after changes, and in pieces when large (D12, M-05).
import { hash } from "node:crypto";
import { parse64 } from "#base/json64.ts";
import { METRICS_USERS_LISTED_MAX } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import type { UserDetail } from "./cluster-state.ts";
import { count, flag, smallCount } from "./document-fields.ts";
import { countAt, detailAt, rereadUsers, type ValueScan } from "./known-users.ts";
import { PollError } from "./poll-error.ts";
import { UserValues } from "./user-values.ts";

/** Bytes of a node's document that are read at once, so that the event loop runs between pieces. */
export const POLL_PIECE_BYTES = 65_536;

/** The maps of users by their names in the document. */
export interface UserMapValues {
  readonly per_user_storage: bigint;
  readonly per_user_quota: bigint;
  readonly per_user_detail: UserDetail;
  readonly near_quota_storage: bigint;
  readonly near_quota_limit: bigint;
}

/** Name of a map of users. */
export type UserMapName = keyof UserMapValues;

/** Maps of users near their quota only, independent of the other lists. */
export const NEAR_MAP_NAMES = ["near_quota_storage", "near_quota_limit"] as const;

/** The maps' names in the order in which nodes write them. */
export const USER_MAP_NAMES: readonly UserMapName[] = [
  ...NEAR_MAP_NAMES,
  "per_user_storage",
  "per_user_quota",
  "per_user_detail",
];

type Readers = {
  readonly [N in UserMapName]: (
    value: unknown,
    before: UserMapValues[N] | undefined,
  ) => UserMapValues[N] | undefined;
};

/** Reads a value of each map; undefined for an invalid one. */
const READERS: Readers = {
  per_user_storage: count,
  per_user_quota: count,
  per_user_detail: validDetail,
  near_quota_storage: count,
  near_quota_limit: count,
};

/** Keeps the valid part of an invalid value. */
const REMAINS: Readers = {
  per_user_storage: () => undefined,
  per_user_quota: () => undefined,
  per_user_detail: detailOf,
  near_quota_storage: () => undefined,
  near_quota_limit: () => undefined,
};

type Rereaders = { readonly [N in UserMapName]: ValueScan<UserMapValues[N]> };

/** Rereads a value where the same users are listed as before. */
const REREADERS: Rereaders = {
  per_user_storage: countAt,
  per_user_quota: countAt,
  per_user_detail: detailAt,
  near_quota_storage: countAt,
  near_quota_limit: countAt,
};

/** A map of users from the node's last document. */
export interface ReadMap<N extends UserMapName> {
  readonly users: UserValues<UserMapValues[N]>;
  /** False when an entry had no valid username or value; such entries are left out. */
  readonly isValid: boolean;
}

/** Bytes that are reread at once, which takes a millisecond. */
const REREAD_MAX_BYTES = 524_288;

/** Lets the event loop turn. */
export type Turn = () => Promise<void>;

/** One map of one node, poll after poll. */
export class UserPart<N extends UserMapName> {
  readonly #name: N;
  #read: ReadMap<N> = nobody();
  #digest = "";
  /** Fields after the map in its bytes. */
  #behind: Readonly<Record<string, unknown>> = {};

  constructor(name: N) {
    this.#name = name;
  }

  /**
   * Reads the bytes of the map, which begin with `,"per_user_quota":{…}`, and the fields after it. Names in
   * `listed` are valid already and are shared with it. Throws SyntaxError for invalid JSON, and PollError for
   * a large map that cannot be read in pieces.
   */
  async take(
    bytes: Buffer,
    turn: Turn,
    listed: UserValues<unknown> | undefined,
  ): Promise<{ read: ReadMap<N>; behind: Readonly<Record<string, unknown>> }> {
    if (this.#reread(bytes)) return { read: this.#read, behind: this.#behind };
    const digest = await digestOf(bytes, turn);
    if (digest !== this.#digest) {
      const gathered = new Gathering(this.#name, this.#read.users, listed);
      if (bytes.length <= POLL_PIECE_BYTES) {
        const { [this.#name]: map, ...behind } = parse(`{${bytes.toString("utf8", 1)}}`, parsePlain);
        gathered.addAll(map, () => parse(`{${bytes.toString("utf8", 1)}}`, parse64)[this.#name]);
        this.#behind = behind;
      } else this.#behind = await readInPieces(bytes, this.#name, gathered, turn);
      this.#read = gathered.result(this.#read);
      this.#digest = digest;
    }
    return { read: this.#read, behind: this.#behind };
  }

  /** Rereads a map with the same users in the nodes' layout and nothing after it; false for any other. */
  #reread(bytes: Buffer): boolean {
    const { users: before, isValid } = this.#read;
    if (!isValid || before.size === 0 || bytes.length > REREAD_MAX_BYTES) return false;
    const start = `,"${this.#name}":{`.length;
    const users = rereadUsers(bytes, start, before, REREADERS[this.#name]);
    if (users === undefined) return false;
    if (users !== before) this.#read = { users, isValid };
    [this.#digest, this.#behind] = ["", {}];
    return true;
  }

  /** Takes a map that was parsed with the rest of a document. */
  takeParsed(map: unknown, listed: UserValues<unknown> | undefined): ReadMap<N> {
    const gathered = new Gathering(this.#name, this.#read.users, listed);
    gathered.addAll(map, () => map);
    this.#read = gathered.result(this.#read);
    this.#digest = "";
    return this.#read;
  }

  /** Forgets the node's map. */
  clear(): ReadMap<N> {
    if (this.#read.users.size > 0 || !this.#read.isValid) this.#read = nobody();
    this.#digest = "";
    return this.#read;
  }
}

function nobody<N extends UserMapName>(): ReadMap<N> {
  return { users: UserValues.of(new Map()), isValid: true };
}

/** Collects entries one by one; unchanged values keep their objects. */
class Gathering<N extends UserMapName> {
  readonly #name: N;
  readonly #before: UserValues<UserMapValues[N]>;
  readonly #listed: UserValues<unknown> | undefined;
  readonly #users = new Map<string, UserMapValues[N]>();
  #isValid = true;
  #hasChanged = false;

  constructor(name: N, before: UserValues<UserMapValues[N]>, listed: UserValues<unknown> | undefined) {
    this.#name = name;
    this.#before = before;
    this.#listed = listed;
  }

  /** Adds a piece of the map. `exact` parses it again where a number would round an integer (T17). */
  addAll(piece: unknown, exact: () => unknown): void {
    if (piece === null || typeof piece !== "object" || Array.isArray(piece)) {
      this.#isValid = false;
      return;
    }
    let exactPiece: Readonly<Record<string, unknown>> | undefined;
    for (const [username, value] of Object.entries(piece)) {
      const before = this.#before.get(username);
      if (before === undefined && this.#listed?.has(username) !== true && !isUsername(username)) {
        this.#isValid = false;
        continue;
      }
      let known = READERS[this.#name](value, before);
      if (known === undefined) {
        exactPiece ??= exact() as Readonly<Record<string, unknown>>;
        known = this.#readAgain(exactPiece[username], before);
      }
      if (known === undefined) continue;
      if (known !== before) this.#hasChanged = true;
      this.#users.set(username, known);
    }
    if (this.#users.size > METRICS_USERS_LISTED_MAX) throw new PollError("the document lists too many users");
  }

  #readAgain(value: unknown, before: UserMapValues[N] | undefined): UserMapValues[N] | undefined {
    const known = READERS[this.#name](value, before);
    if (known !== undefined) return known;
    this.#isValid = false;
    return REMAINS[this.#name](value, before);
  }

  /** The whole map; the one before when it is unchanged. */
  result(before: ReadMap<N>): ReadMap<N> {
    const isSame =
      !this.#hasChanged && this.#users.size === this.#before.size && this.#isValid === before.isValid;
    if (isSame) return before;
    return { users: UserValues.of(this.#users, [this.#listed, this.#before]), isValid: this.#isValid };
  }
}

function validDetail(value: unknown, before: UserDetail | undefined): UserDetail | undefined {
  const detail = detailOf(value, before);
  if (detail === undefined || detail === before) return detail;
  const raw = value as Readonly<Record<string, unknown>>;
  for (const [key, name] of DETAIL_NAMES) {
    if (detail[key] === null && raw[name] !== null && raw[name] !== undefined) return undefined;
  }
  return detail;
}

const DETAIL_NAMES: readonly (readonly [keyof UserDetail, string])[] = [
  ["liveBytes", "live_bytes"],
  ["trashBytes", "trash_bytes"],
  ["stagingBytes", "staging_bytes"],
  ["fileCount", "file_count"],
  ["inodeCount", "inode_count"],
  ["inodeLimit", "inode_limit"],
  ["inodeLimitExplicit", "inode_limit_explicit"],
  ["lastActiveUnix", "last_active_unix"],
  ["quotaExplicit", "quota_explicit"],
];

function detailOf(value: unknown, before: UserDetail | undefined): UserDetail | undefined {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  const raw = value as Readonly<Record<string, unknown>>;
  const detail: UserDetail = {
    liveBytes: count(raw["live_bytes"]) ?? null,
    trashBytes: count(raw["trash_bytes"]) ?? null,
    stagingBytes: count(raw["staging_bytes"]) ?? null,
    fileCount: smallCount(raw["file_count"]) ?? null,
    inodeCount: smallCount(raw["inode_count"]) ?? null,
    inodeLimit: smallCount(raw["inode_limit"]) ?? null,
    inodeLimitExplicit: flag(raw["inode_limit_explicit"]) ?? null,
    lastActiveUnix: smallCount(raw["last_active_unix"]) ?? null,
    quotaExplicit: flag(raw["quota_explicit"]) ?? null,
  };
  return before !== undefined && isSameDetail(before, detail) ? before : detail;
}

function isSameDetail(a: UserDetail, b: UserDetail): boolean {
  return (
    a.lastActiveUnix === b.lastActiveUnix &&
    a.liveBytes === b.liveBytes &&
    a.trashBytes === b.trashBytes &&
    a.stagingBytes === b.stagingBytes &&
    a.fileCount === b.fileCount &&
    a.inodeCount === b.inodeCount &&
    a.inodeLimit === b.inodeLimit &&
    a.inodeLimitExplicit === b.inodeLimitExplicit &&
    a.quotaExplicit === b.quotaExplicit
  );
}

function isUsername(name: string): boolean {
  try {
    return canonicalUsername(name) === name;
  } catch {
    return false;
  }
}

/** Parses an object. Throws SyntaxError, also for JSON of another type. */
function parse(text: string, parser: (text: string) => unknown): Readonly<Record<string, unknown>> {
  const parsed = parser(text);
  if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) {
    throw new SyntaxError("not an object");
  }
  return parsed as Readonly<Record<string, unknown>>;
}

/** JSON.parse without its any. */
const parsePlain = (text: string): unknown => JSON.parse(text);

/** Bytes that are hashed between two turns of the event loop: a millisecond or two. */
const HASHED_PER_TURN_BYTES = 2_097_152;

async function digestOf(bytes: Buffer, turn: Turn): Promise<string> {
  if (bytes.length <= HASHED_PER_TURN_BYTES) return hash("sha256", bytes, "base64");
  let chain = "";
  for (let at = 0; at < bytes.length; at += HASHED_PER_TURN_BYTES) {
    chain = hash("sha256", chain + hash("sha256", bytes.subarray(at, at + HASHED_PER_TURN_BYTES), "base64"));
    await turn();
  }
  return chain;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
/** Set in braces and not in brackets; without it `[` equals `{`, and `]` equals `}`. */
const BRACE_BIT = 0x20;
const OPENING = 0x5b;
const CLOSING = 0x5d;

/** Reads a large map some tens of kilobytes at a time; returns the fields after it. */
async function readInPieces<N extends UserMapName>(
  bytes: Buffer,
  name: N,
  gathered: Gathering<N>,
  turn: Turn,
): Promise<Readonly<Record<string, unknown>>> {
  let start = `,"${name}":{`.length;
  for (;;) {
    const { end, isLast } = endOfPiece(bytes, start);
    const text = `{${bytes.toString("utf8", start, end)}}`;
    gathered.addAll(parse(text, parsePlain), () => parse(text, parse64));
    if (isLast) {
      const rest = bytes.toString("utf8", end + 1);
      if (rest.length > POLL_PIECE_BYTES) throw new PollError("the document cannot be read in pieces");
      // After a map comes nothing, or a comma and further fields.
      return rest === "" ? {} : parse(`{"":0${rest}}`, parsePlain);
    }
    // Pieces parsed one by one would hide a trailing comma.
    if (bytes[end + 1] !== QUOTE) throw new SyntaxError("an entry begins with its name");
    start = end + 1;
    await turn();
  }
}

/** Finds the comma or brace after an entry, beginning some way after `start`. */
function endOfPiece(bytes: Buffer, start: number): { end: number; isLast: boolean } {
  const enough = start + POLL_PIECE_BYTES;
  const tooMuch = Math.min(bytes.length, start + 4 * POLL_PIECE_BYTES);
  let depth = 1;
  let isInText = false;
  for (let at = start; at < tooMuch; at++) {
    const byte = bytes[at] ?? 0;
    if (isInText) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if ((byte & ~BRACE_BIT) === OPENING) depth++;
    else if ((byte & ~BRACE_BIT) === CLOSING) {
      depth--;
      if (depth === 0) return { end: at, isLast: true };
    } else if (byte === COMMA && depth === 1 && at >= enough) return { end: at, isLast: false };
  }
  throw new PollError("the document cannot be read in pieces");
}
