// The maps of users in a node's document: entries are checked one by one (spec 2.7, D12, M-05).
import { METRICS_USERS_LISTED_MAX } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import type { UserDetail } from "./cluster-state.ts";
import { count, flag, smallCount } from "./document-fields.ts";
import { PollError } from "./poll-error.ts";
import { UserValues } from "./user-values.ts";

/** Invalid entries of a map that are looked at before the document is refused. */
const FAULTS_MAX = 1_000;

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

/** The lists of all users. */
export const LIST_NAMES = ["per_user_storage", "per_user_quota", "per_user_detail"] as const;

/** Maps of users near their quota only, independent of the lists. */
export const NEAR_MAP_NAMES = ["near_quota_storage", "near_quota_limit"] as const;

/** A map of users from a node's document. */
export interface ReadMap<V> {
  readonly users: UserValues<V>;
  /** False when an entry had no valid username or value; such entries are left out. */
  readonly isValid: boolean;
}

/** The map of a document without one. */
export const NO_USERS: ReadMap<never> = { users: UserValues.of(new Map<string, never>()), isValid: true };

/** How a value is read and compared. */
interface Kind<V> {
  /** Keeps the valid part of a value, if any; calls `fault` for an invalid one. */
  readonly read: (value: unknown, fault: Fault) => V | undefined;
  readonly isSame: (a: V, b: V) => boolean;
}

const COUNT: Kind<bigint> = {
  read: (value, fault) => checked(value, count, fault),
  isSame: (a, b) => a === b,
};

const KINDS: { readonly [N in UserMapName]: Kind<UserMapValues[N]> } = {
  per_user_storage: COUNT,
  per_user_quota: COUNT,
  per_user_detail: { read: detailOf, isSame: isSameDetail },
  near_quota_storage: COUNT,
  near_quota_limit: COUNT,
};

/** How a map is read. */
export interface ReadOptions {
  /** True for a difference: other users stay as they were before. */
  readonly isPartial: boolean;
  /** Users whose names are valid. */
  readonly listed: UserValues<unknown> | undefined;
  readonly onInvalid: (value: unknown) => void;
}

/**
 * Reads a parsed map. Unchanged values, and an unchanged map, are the same objects as before. Throws PollError
 * for too many users.
 */
export function readUsers<N extends UserMapName>(
  name: N,
  map: unknown,
  before: ReadMap<UserMapValues[N]>,
  { isPartial, listed, onInvalid }: ReadOptions,
): ReadMap<UserMapValues[N]> {
  if (!isObject(map)) return { users: NO_USERS.users, isValid: false };
  const { read, isSame }: Kind<UserMapValues[N]> = KINDS[name];
  const found = new Map<string, UserMapValues[N]>();
  let isValid = true;
  let isKnown = true;
  let hasChanged = false;
  const names = Object.keys(map);
  if (names.length > METRICS_USERS_LISTED_MAX) throw new PollError("the document lists too many users");
  let faults = 0;
  const fault = (value: unknown): void => {
    if (++faults > FAULTS_MAX) throw new PollError("the document has too many invalid entries");
    isValid = false;
    onInvalid(value);
  };
  for (const username of names) {
    const was = before.users.get(username);
    if (was === undefined && listed?.has(username) !== true && !isUsername(username)) {
      fault(username);
      continue;
    }
    const now = read(map[username], fault);
    if (now === undefined) continue;
    const isUnchanged = was !== undefined && isSame(was, now);
    isKnown &&= was !== undefined;
    hasChanged ||= !isUnchanged;
    found.set(username, isUnchanged ? was : now);
  }
  let { users } = before;
  if (!isKnown || !(isPartial || found.size === users.size)) {
    users = UserValues.of(isPartial ? new Map([...users, ...found]) : found, [listed, users]);
  } else if (hasChanged) users = users.with(found);
  if (users.size > METRICS_USERS_LISTED_MAX) throw new PollError("the document lists too many users");
  return users === before.users && isValid === before.isValid ? before : { users, isValid };
}

/** True for a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

type Fault = (value: unknown) => void;

function checked<T>(value: unknown, read: (value: unknown) => T | undefined, fault: Fault): T | undefined {
  const known = read(value);
  if (known === undefined) fault(value);
  return known;
}

function detailOf(value: unknown, fault: Fault): UserDetail | undefined {
  if (!isObject(value)) {
    fault(value);
    return undefined;
  }
  const field = <T>(name: string, read: (raw: unknown) => T | undefined): T | null =>
    value[name] === undefined || value[name] === null ? null : (checked(value[name], read, fault) ?? null);
  return {
    liveBytes: field("live_bytes", count),
    trashBytes: field("trash_bytes", count),
    stagingBytes: field("staging_bytes", count),
    fileCount: field("file_count", smallCount),
    inodeCount: field("inode_count", smallCount),
    inodeLimit: field("inode_limit", smallCount),
    inodeLimitExplicit: field("inode_limit_explicit", flag),
    lastActiveUnix: field("last_active_unix", smallCount),
    quotaExplicit: field("quota_explicit", flag),
    trashExpiresUnix: field("trash_expires_unix", smallCount),
  };
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
    a.quotaExplicit === b.quotaExplicit &&
    a.trashExpiresUnix === b.trashExpiresUnix
  );
}

function isUsername(name: string): boolean {
  try {
    return canonicalUsername(name) === name;
  } catch {
    return false;
  }
}
