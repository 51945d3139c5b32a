// Per-user data of /metrics as ready text; a scrape rewrites only changed entries (spec 2.7, D12, D25).
import { toJson64 } from "#base/json64.ts";
import { METRICS_USERS_LISTED_MAX, QUOTA_ALERT_WARNING_PERCENT } from "#base/limits.ts";
import { type Random, systemRandom } from "#base/random.ts";
import { escapeLabel } from "./prometheus-form.ts";

/** One user's root on this node. */
export interface UserReadings {
  readonly username: string;
  readonly liveBytes: number | bigint;
  readonly trashBytes: number | bigint;
  readonly stagingBytes: number | bigint;
  readonly fileCount: number;
  /** Files and directories, those in the trash included. */
  readonly inodeCount: number;
  readonly inodeLimit: number;
  readonly inodeLimitExplicit: boolean;
  readonly quotaBytes: bigint;
  readonly quotaExplicit: boolean;
  readonly lastActiveWallMs: number | undefined;
  /** When the oldest item of the trash is deleted for its age; undefined for none. */
  readonly trashExpiresWallMs?: number | undefined;
}

/** The per-user maps of the document; guarded when SVC_METRICS_TOKEN is set (decision T8). */
export const USER_MAPS = ["per_user_storage", "per_user_quota", "per_user_detail"] as const;

/** Per-user series of the Prometheus form; guarded alike. */
export const USER_SERIES = [
  "svc_user_used_bytes",
  "svc_user_quota_bytes",
  "svc_user_inodes",
  "svc_user_inode_limit",
] as const;

/**
 * Maps of users at 95 % of their quota or above, each with the map that also holds its entries. They list
 * these users however many users the node has.
 */
export const NEAR_MAPS = {
  near_quota_storage: "per_user_storage",
  near_quota_limit: "per_user_quota",
} as const;

type UserMap = (typeof USER_MAPS)[number];
type NearMap = keyof typeof NEAR_MAPS;
type UserSeries = (typeof USER_SERIES)[number];

/** Users with joined text: few pieces to send, and a change copies only tens of kilobytes. */
const USERS_PER_BLOCK = 256;
const BLOCKS_LISTED = METRICS_USERS_LISTED_MAX / USERS_PER_BLOCK;
const NEAR_PERCENT = BigInt(QUOTA_ALERT_WARNING_PERCENT);
const NOTHING: readonly Buffer[] = [];
const LIFE_BYTES = 8;
/** More changed users are sent within the whole document. */
const DIFFERENCE_USERS_MAX = 4_096;

/** One user: the readings, and an entry of each map as text, encoded once. */
interface Row {
  readonly readings: UserReadings;
  /** The username as a JSON string with its colon. */
  readonly key: string;
  readonly json: Readonly<Record<UserMap, Buffer>>;
  /** Number of the answer that was the first with each of these texts. */
  readonly since: Readonly<Record<UserMap, number>>;
}

/** The joined entries of a block. */
interface Joined {
  text: Buffer;
  /** Start of each row's entry. */
  readonly offsets: readonly number[];
  /** True once a reader may hold it: a write then copies it first. */
  isHandedOut: boolean;
}

/** A group of users with their joined text. */
interface Block {
  readonly rows: Row[];
  readonly json: Map<UserMap, Joined>;
  /** The largest number of a row. */
  readonly since: Record<UserMap, number>;
  series: Readonly<Record<UserSeries, Buffer>> | undefined;
}

/** All users of a node. Rows are only added and replaced: a root stays on its node. */
export class UserMaps {
  readonly #read: (username: string) => UserReadings | undefined;
  readonly #places = new Map<string, number>();
  readonly #blocks: Block[] = [];
  /** Rows of users at 95 % of their quota or above. */
  readonly #near = new Map<string, Row>();
  /** Their text, until one of them changes. */
  readonly #nearText = new Map<NearMap, Buffer>();
  #nearSince = 0;
  /** Random, so that no version of another process is taken for one of this. */
  readonly #life: string;
  /** Number of the next answer. */
  #answer = 1;
  #trashBytes = 0n;
  #stagingBytes = 0n;

  /** `read` returns a user's readings now; undefined for a user without a root here. */
  constructor(read: (username: string) => UserReadings | undefined, random: Random = systemRandom) {
    this.#read = read;
    this.#life = random.bytes(LIFE_BYTES).toString("hex");
  }

  /** Users with a root here. */
  get count(): number {
    return this.#places.size;
  }

  /** True when there are more users than the maps list; totals cover all of them. */
  get isTruncated(): boolean {
    return this.#places.size > METRICS_USERS_LISTED_MAX;
  }

  /** Bytes in the trash of all users. */
  get trashBytes(): bigint {
    return this.#trashBytes;
  }

  /** Bytes of all users' unfinished uploads. */
  get stagingBytes(): bigint {
    return this.#stagingBytes;
  }

  /** Reads the named users anew; the work is proportional to their number. */
  update(usernames: Iterable<string>): void {
    for (const username of usernames) {
      const readings = this.#read(username);
      if (readings !== undefined) this.#put(readings);
    }
  }

  /** Numbers an answer; what changes afterwards is in no answer with this version (D25). */
  takeVersion(): string {
    return `users-${this.#life}-${this.#answer++}`;
  }

  /**
   * The number of an answer by its version. Undefined for a version of another process, or where so many users
   * changed since that the whole document costs less: its pieces are shared by all readers.
   */
  answerOf(version: string | null): number | undefined {
    const [, life, digits] = /^users-([0-9a-f]+)-([1-9]\d{0,14})$/.exec(version ?? "") ?? [];
    const answer = Number(digits);
    const isOwn = life === this.#life && answer < this.#answer;
    return isOwn && this.#changedAfter(answer) <= DIFFERENCE_USERS_MAX ? answer : undefined;
  }

  #changedAfter(answer: number): number {
    const isNewer = ({ since }: Pick<Block, "since">): boolean =>
      USER_MAPS.some((map) => since[map] > answer);
    let count = 0;
    for (const block of this.#blocks.slice(0, BLOCKS_LISTED)) {
      if (isNewer(block)) for (const row of block.rows) if (isNewer(row)) count++;
    }
    return count;
  }

  /** The entries of one map that changed after an answer, as JSON text without braces. */
  changedJson(map: UserMap, after: number): Buffer {
    const changed = this.#blocks
      .slice(0, BLOCKS_LISTED)
      .flatMap((block) => (block.since[map] > after ? block.rows : []))
      .filter((row) => row.since[map] > after);
    return Buffer.concat(changed.map((row) => row.json[map])).subarray(1);
  }

  /** True when the maps of users near their quota changed after an answer. */
  hasNearChanged(after: number): boolean {
    return this.#nearSince > after;
  }

  /** The entries of one map as JSON text without its braces, in pieces that never change afterwards. */
  json(map: UserMap): readonly Buffer[] {
    return this.#listed((block, isFirst) => {
      let joined = block.json.get(map);
      if (joined === undefined) {
        joined = join(block.rows, map);
        block.json.set(map, joined);
      }
      joined.isHandedOut = true;
      // Every entry begins with its comma; the very first needs none.
      return isFirst ? joined.text.subarray(1) : joined.text;
    });
  }

  /** The same for users near their quota; at most METRICS_USERS_LISTED_MAX of them. */
  nearJson(map: NearMap): Buffer {
    let text = this.#nearText.get(map);
    if (text === undefined) {
      const rows = [...this.#near.values()].slice(0, METRICS_USERS_LISTED_MAX);
      text = Buffer.concat(rows.map(({ json }) => json[NEAR_MAPS[map]])).subarray(1);
      this.#nearText.set(map, text);
    }
    return text;
  }

  /** The samples of one series as lines, in pieces that never change afterwards. */
  samples(series: UserSeries): readonly Buffer[] {
    return this.#listed((block) => {
      block.series ??= joinedSeries(block.rows);
      return block.series[series];
    });
  }

  #put(readings: UserReadings): void {
    const { username } = readings;
    const at = this.#places.get(username) ?? this.#places.size;
    let block = this.#blocks[Math.trunc(at / USERS_PER_BLOCK)];
    if (block === undefined) {
      block = { rows: [], json: new Map(), since: { ...NEVER }, series: undefined };
      this.#blocks.push(block);
    }
    const place = at % USERS_PER_BLOCK;
    const before = block.rows[place];
    if (before === undefined) this.#places.set(username, at);
    this.#count(before?.readings, readings);
    const row = rowOf(readings, before, this.#answer);
    block.rows[place] = row;
    this.#noteNear(row, before);
    for (const map of USER_MAPS) {
      block.since[map] = Math.max(block.since[map], row.since[map]);
      patch(block, map, place, before?.json[map]);
    }
    if (hasMoved(row, before)) block.series = undefined;
  }

  #noteNear(row: Row, before: Row | undefined): void {
    const { username } = row.readings;
    const wasNear = this.#near.has(username);
    const isNear = isNearQuota(row.readings);
    if (isNear) this.#near.set(username, row);
    else if (wasNear) this.#near.delete(username);
    const isSame =
      row.json.per_user_storage === before?.json.per_user_storage &&
      row.json.per_user_quota === before.json.per_user_quota;
    if (isNear === wasNear && (isSame || !isNear)) return;
    this.#nearText.clear();
    this.#nearSince = this.#answer;
  }

  #count(before: UserReadings | undefined, now: UserReadings): void {
    if (now.trashBytes !== (before?.trashBytes ?? 0)) {
      this.#trashBytes += BigInt(now.trashBytes) - BigInt(before?.trashBytes ?? 0);
    }
    if (now.stagingBytes !== (before?.stagingBytes ?? 0)) {
      this.#stagingBytes += BigInt(now.stagingBytes) - BigInt(before?.stagingBytes ?? 0);
    }
  }

  #listed(text: (block: Block, isFirst: boolean) => Buffer): readonly Buffer[] {
    if (this.#blocks.length === 0) return NOTHING;
    return this.#blocks.slice(0, BLOCKS_LISTED).map((block, index) => text(block, index === 0));
  }
}

/** True when a series of the user has a new value. */
function hasMoved(row: Row, before: Row | undefined): boolean {
  return (
    row.json.per_user_storage !== before?.json.per_user_storage ||
    row.json.per_user_quota !== before.json.per_user_quota ||
    row.readings.inodeCount !== before.readings.inodeCount ||
    row.readings.inodeLimit !== before.readings.inodeLimit
  );
}

/**
 * Updates a block's joined text with one row's; its length seldom changes, as numbers seldom gain a digit.
 */
function patch(block: Block, map: UserMap, place: number, before: Buffer | undefined): void {
  const now = block.rows[place]?.json[map];
  const joined = block.json.get(map);
  if (joined === undefined || now === undefined || now === before) return;
  if (before?.length !== now.length) {
    block.json.delete(map);
    return;
  }
  if (joined.isHandedOut) {
    joined.text = Buffer.from(joined.text);
    joined.isHandedOut = false;
  }
  now.copy(joined.text, joined.offsets[place]);
}

function join(rows: readonly Row[], map: UserMap): Joined {
  const offsets: number[] = [];
  let offset = 0;
  for (const { json } of rows) {
    offsets.push(offset);
    offset += json[map].length;
  }
  return {
    text: Buffer.concat(
      rows.map((row) => row.json[map]),
      offset,
    ),
    offsets,
    isHandedOut: false,
  };
}

const NEVER: Readonly<Record<UserMap, number>> = {
  per_user_storage: 0,
  per_user_quota: 0,
  per_user_detail: 0,
};

/** The row of a user, first in the answer of that number; unchanged entries keep their text. */
function rowOf(user: UserReadings, before: Row | undefined, answer: number): Row {
  const key = before?.key ?? `,${JSON.stringify(user.username)}:`;
  const was = before?.readings;
  const isSameUsage =
    was?.liveBytes === user.liveBytes &&
    was.trashBytes === user.trashBytes &&
    was.stagingBytes === user.stagingBytes;
  const detail = Buffer.from(key + detailOf(user));
  const json = {
    per_user_storage:
      before !== undefined && isSameUsage
        ? before.json.per_user_storage
        : Buffer.from(key + json64(usedBytes(user))),
    per_user_quota:
      before !== undefined && was?.quotaBytes === user.quotaBytes
        ? before.json.per_user_quota
        : Buffer.from(key + json64(user.quotaBytes)),
    per_user_detail:
      before?.json.per_user_detail.equals(detail) === true ? before.json.per_user_detail : detail,
  };
  const since = (map: UserMap): number => (before?.json[map] === json[map] ? before.since[map] : answer);
  return {
    readings: user,
    key,
    json,
    since: {
      per_user_storage: since("per_user_storage"),
      per_user_quota: since("per_user_quota"),
      per_user_detail: since("per_user_detail"),
    },
  };
}

/**
 * Written by hand, since JSON.stringify takes several times as long. Values are numbers, booleans or null.
 */
function detailOf(user: UserReadings): string {
  const lastActive = user.lastActiveWallMs === undefined ? "null" : Math.floor(user.lastActiveWallMs / 1000);
  const expiry = user.trashExpiresWallMs === undefined ? "" : Math.floor(user.trashExpiresWallMs / 1000);
  return (
    `{"live_bytes":${json64(user.liveBytes)},"trash_bytes":${json64(user.trashBytes)},` +
    `"staging_bytes":${json64(user.stagingBytes)},"file_count":${user.fileCount},` +
    `"inode_count":${user.inodeCount},"inode_limit":${user.inodeLimit},"inode_limit_explicit":${user.inodeLimitExplicit},` +
    `"last_active_unix":${lastActive},"quota_explicit":${user.quotaExplicit}` +
    `${expiry === "" ? "" : `,"trash_expires_unix":${expiry}`}}`
  );
}

function joinedSeries(rows: readonly Row[]): NonNullable<Block["series"]> {
  let used = "";
  let quota = "";
  let inodes = "";
  let limit = "";
  for (const { readings } of rows) {
    const label = `{user="${escapeLabel(readings.username)}"}`;
    used += `svc_user_used_bytes${label} ${usedBytes(readings)}\n`;
    quota += `svc_user_quota_bytes${label} ${readings.quotaBytes}\n`;
    inodes += `svc_user_inodes${label} ${readings.inodeCount}\n`;
    limit += `svc_user_inode_limit${label} ${readings.inodeLimit}\n`;
  }
  return {
    svc_user_used_bytes: Buffer.from(used),
    svc_user_quota_bytes: Buffer.from(quota),
    svc_user_inodes: Buffer.from(inodes),
    svc_user_inode_limit: Buffer.from(limit),
  };
}

/** True from the share on at which the console raises alerts. */
function isNearQuota(user: UserReadings): boolean {
  return BigInt(usedBytes(user)) * 100n >= user.quotaBytes * NEAR_PERCENT;
}

/** Bytes that a user occupies; plain numbers stay plain where that is exact. */
function usedBytes(user: UserReadings): number | bigint {
  const { liveBytes: live, trashBytes: trash, stagingBytes: staging } = user;
  if (typeof live === "number" && typeof trash === "number" && typeof staging === "number") {
    const total = live + trash + staging;
    if (Number.isSafeInteger(total)) return total;
  }
  return BigInt(live) + BigInt(trash) + BigInt(staging);
}

/** A byte count as JSON text: a string above 2^53 - 1 (T17). */
function json64(bytes: number | bigint): string {
  if (typeof bytes === "number" && Number.isSafeInteger(bytes)) return String(bytes);
  return JSON.stringify(toJson64(BigInt(bytes)));
}
