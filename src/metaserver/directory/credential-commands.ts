// The commands of the metadata store about app passwords and their end, as plans of one transaction each.
import { GroveError } from "#base/errors.ts";
import { setting } from "#metaserver/sql/settings.ts";
import { all, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import type { AppPasswordRecord, Revocations } from "./credential-store.ts";

/** App passwords of one user. */
export const APP_PASSWORDS_PER_USER = 50;
/** Doors whose last use an app password remembers. */
const DOORS_PER_APP_PASSWORD = 16;
/** Ends of credentials that are listed one by one; beyond, all older sessions of doors end. */
const REVOCATIONS_LISTED_MAX = 10_000;
/** How long ends are listed: longer than a door's session lasts while no MetaServer is reached. */
const REVOCATIONS_KEPT_MS = 2 * 3_600_000;
/** Uses are noted at most once in this time, so that a busy client costs few writes. */
export const USE_NOTED_EVERY_MS = 300_000;

/** Settings, since a new table would shut out every MetaServer and console of the version before. */
const PASSWORD = "app_password:";
const OWNED = "app_passwords_of:";
const REVOKED = "revoked_credentials";

/** Keeps a new one. */
export function* addAppPassword(record: AppPasswordRecord): Plan<void> {
  const others = yield* appPasswordsOf(record.owner);
  if (others.some(({ name }) => name === record.name)) {
    throw new GroveError("BAD_ARGUMENT", "an app password of that name exists: choose another, or revoke it");
  }
  if (others.length >= APP_PASSWORDS_PER_USER) {
    throw new GroveError(
      "OVERLOADED",
      `a user has at most ${APP_PASSWORDS_PER_USER} app passwords: revoke one`,
      { metadata: { limit: String(APP_PASSWORDS_PER_USER) } },
    );
  }
  yield* putSetting(PASSWORD + record.id, record);
  yield* putSetting(OWNED + record.owner, [...others.map(({ id }) => id), record.id]);
}

/** All of a user, the oldest first. */
export function* appPasswordsOf(owner: string): Plan<AppPasswordRecord[]> {
  const text = yield* setting(OWNED + owner);
  const ids = text === undefined ? [] : (JSON.parse(text) as string[]);
  const records: AppPasswordRecord[] = [];
  for (const id of ids.slice(0, APP_PASSWORDS_PER_USER)) {
    const record = yield* findAppPassword(id);
    // An id must not bring another's record.
    if (record?.owner === owner) records.push(record);
  }
  return records;
}

/** One by its id. */
export function* findAppPassword(id: string): Plan<AppPasswordRecord | undefined> {
  const text = yield* setting(PASSWORD + id);
  return text === undefined ? undefined : (JSON.parse(text) as AppPasswordRecord);
}

/** Notes a use; one that has been revoked meanwhile stays so. */
export function* noteAppPasswordUse(id: string, door: string, wallMs: number): Plan<void> {
  const record = yield* findAppPassword(id);
  if (record === undefined) return;
  yield* putSetting(PASSWORD + id, useNoted(record, door, wallMs));
}

/** A credential with one more use. */
export function useNoted<T extends Pick<AppPasswordRecord, "doors" | "lastUsedMs">>(
  record: T,
  door: string,
  wallMs: number,
): T {
  const latest = Object.entries({ ...record.doors, [door]: Math.max(wallMs, record.doors[door] ?? 0) })
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, DOORS_PER_APP_PASSWORD);
  const lastUsedMs = Math.max(wallMs, record.lastUsedMs);
  return { ...record, lastUsedMs, doors: Object.fromEntries(latest) };
}

/** Ends one of a user. */
export function* revokeAppPassword(
  owner: string,
  which: string,
  wallMs: number,
): Plan<AppPasswordRecord | undefined> {
  const own = yield* appPasswordsOf(owner);
  const record = own.find(({ id }) => id === which) ?? own.find(({ name }) => name === which);
  if (record !== undefined) yield* endAppPasswords([record], wallMs);
  return record;
}

/** The app passwords that were used at a door since a moment. */
export function* usedAtDoor(door: string, sinceMs: number): Plan<AppPasswordRecord[]> {
  return yield* usedSince<AppPasswordRecord>(PASSWORD, door, sinceMs);
}

/** Records below a prefix of settings that were used at a door since a moment. */
export function* usedSince<T extends Pick<AppPasswordRecord, "doors">>(
  prefix: string,
  door: string,
  sinceMs: number,
): Plan<T[]> {
  const rows = yield* all<{ value: string }>("SELECT value FROM settings WHERE key LIKE ?", `${prefix}%`);
  const records = rows.map(({ value }) => JSON.parse(value) as T);
  return records.filter(({ doors }) => (doors[door] ?? 0) > sinceMs - USE_NOTED_EVERY_MS);
}

/** What was revoked lately. */
export function* revocations(): Plan<Revocations> {
  const text = yield* setting(REVOKED);
  return text === undefined ? { credentials: [], allBeforeMs: 0 } : (JSON.parse(text) as Revocations);
}

/** Ends app passwords. */
export function* endAppPasswords(records: readonly AppPasswordRecord[], wallMs: number): Plan<void> {
  if (records.length === 0) return;
  for (const { id, owner } of records) {
    yield* run("DELETE FROM settings WHERE key = ?", PASSWORD + id);
    const left = (yield* appPasswordsOf(owner)).map((record) => record.id);
    if (left.length > 0) yield* putSetting(OWNED + owner, left);
    else yield* run("DELETE FROM settings WHERE key = ?", OWNED + owner);
  }
  yield* endCredentials(
    records.map(({ id }) => `app:${id}`),
    wallMs,
  );
}

/** Gives a person's app passwords to their new name. */
export function* renameCredentials(from: string, to: string): Plan<void> {
  const own = yield* appPasswordsOf(from);
  if (own.length === 0) return;
  for (const record of own) yield* putSetting(PASSWORD + record.id, { ...record, owner: to });
  yield* putSetting(
    OWNED + to,
    own.map(({ id }) => id),
  );
  yield* run("DELETE FROM settings WHERE key = ?", OWNED + from);
}

/** Lists the ends of credentials, for FileServers. */
export function* endCredentials(names: readonly string[], wallMs: number): Plan<void> {
  if (names.length === 0) return;
  const { credentials, allBeforeMs } = yield* revocations();
  const ended = names.map((credential) => ({ credential, atMs: wallMs }));
  const kept = [...credentials.filter(({ atMs }) => atMs > wallMs - REVOCATIONS_KEPT_MS), ...ended];
  yield* putSetting(
    REVOKED,
    kept.length > REVOCATIONS_LISTED_MAX
      ? { credentials: [], allBeforeMs: wallMs }
      : { credentials: kept, allBeforeMs },
  );
}

/** Writes a setting as JSON. */
export function* putSetting(key: string, value: object): Plan<void> {
  yield* run(
    "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    key,
    JSON.stringify(value),
  );
}
