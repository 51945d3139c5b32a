// The commands of the metadata store about app passwords and their end, as plans of one transaction each.
import { endsOfUser } from "#base/door-call.ts";
import { GroveError } from "#base/errors.ts";
import { isSamePerson } from "#base/verified-identity.ts";
import {
  dropSetting,
  dropSettings,
  putJson,
  putSettings,
  setting,
  settingsOf,
} from "#metaserver/sql/settings.ts";
import { all, type Plan } from "#metaserver/sql/sql-plan.ts";
import type { AppPasswordRecord, EndedCredential, Revocations } from "./credential-store.ts";

/** App passwords of one user. */
export const APP_PASSWORDS_PER_USER = 50;
/** Doors whose last use an app password remembers. */
const DOORS_PER_APP_PASSWORD = 16;
/** Ends that are listed one by one. */
export const ENDS_LISTED = 10_000;
/** How long ends are listed: longer than a door's session lasts while no MetaServer is reached. */
export const ENDS_KEPT_MS = 2 * 3_600_000;
/**
 * Ends of one user's credentials of one kind that are listed. Of more, the older ones are told by one line for all of
 * the user's tickets from before them, so that nobody fills the list for others.
 */
export const ENDS_LISTED_PER_USER = 200;

/** Ends of one user, by kind of credential, after which that user makes no new one for a time. */
const ENDS_BEFORE_PAUSE = 100;
/**
 * That time. An end of a browser's session keeps its sign-in from opening another one while that sign-in is recent,
 * so that it must not leave the list within ten minutes.
 */
const PAUSE_MS = { app: ENDS_KEPT_MS, browser: 600_000 } as const;
/** Uses are noted at most once in this time, so that a busy client costs few writes. */
export const USE_NOTED_EVERY_MS = 300_000;

/** Settings, since a new table would shut out every MetaServer and console of the version before. */
const PASSWORD = "app_password:";
const OWNED = "app_passwords_of:";
const REVOKED = "revoked_credentials";

/** Keeps a new one. Each end is listed for all FileServers, so that who ends many makes no more for a while. */
export function* addAppPassword(record: AppPasswordRecord): Plan<void> {
  requireFewEnds(yield* revocations(), "app", record.owner, record.createdMs);
  const known = yield* appPasswordsOf(record.owner);
  const others = known.filter((one) => isSamePerson(one, record));
  // Those of whoever had the address before open nothing any more.
  yield* endAppPasswords(
    known.filter((one) => !isSamePerson(one, record)),
    record.createdMs,
  );
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
  yield* putJson(PASSWORD + record.id, record);
  yield* putJson(OWNED + record.owner, [...others.map(({ id }) => id), record.id]);
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
  yield* putJson(PASSWORD + id, useNoted(record, door, wallMs));
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
  return records.filter(({ doors }) => {
    const usedMs = doors[door];
    return usedMs !== undefined && usedMs > sinceMs - USE_NOTED_EVERY_MS;
  });
}

/** What was revoked lately. */
export function* revocations(): Plan<Revocations> {
  const text = yield* setting(REVOKED);
  return text === undefined ? { credentials: [], allBeforeMs: 0 } : (JSON.parse(text) as Revocations);
}

/** Ends app passwords. */
export function* endAppPasswords(records: readonly AppPasswordRecord[], wallMs: number): Plan<void> {
  if (records.length === 0) return;
  yield* dropRecords(records, { record: PASSWORD, owned: OWNED });
  yield* endCredentials(
    records.map(({ id, owner }) => ({ credential: `app:${id}`, owner, atMs: wallMs })),
    wallMs,
  );
}

/**
 * Removes records and takes their ids from their owners' lists, in few statements: at a door that was taken over
 * thousands may have been used.
 */
export function* dropRecords(
  records: readonly { readonly id: string; readonly owner: string }[],
  prefixes: { readonly record: string; readonly owned: string },
): Plan<void> {
  const dropped = new Set(records.map(({ id }) => id));
  const lists = [...new Set(records.map(({ owner }) => prefixes.owned + owner))];
  const gone = [...dropped].map((id) => prefixes.record + id);
  const left: [string, string][] = [];
  for (const [key, text] of yield* settingsOf(lists)) {
    const ids = (JSON.parse(text) as string[]).filter((id) => !dropped.has(id));
    if (ids.length > 0) left.push([key, JSON.stringify(ids)]);
    else gone.push(key);
  }
  yield* dropSettings(gone);
  yield* putSettings(left);
}

/** Gives a person's app passwords to their new name. */
export function* renameCredentials(from: string, to: string): Plan<void> {
  const own = yield* appPasswordsOf(from);
  if (own.length === 0) return;
  for (const record of own) yield* putJson(PASSWORD + record.id, { ...record, owner: to });
  yield* putJson(
    OWNED + to,
    own.map(({ id }) => id),
  );
  yield* dropSetting(OWNED + from);
}

/** Lists the ends of credentials, for FileServers. */
export function* endCredentials(ended: readonly EndedCredential[], wallMs: number): Plan<void> {
  if (ended.length > 0) yield* putJson(REVOKED, listEnds(yield* revocations(), ended, wallMs));
}

/**
 * Throws RATE_LIMITED for a user with as many ends of the kind as one may cause in its time. Ending is never refused.
 */
export function requireFewEnds(
  { credentials }: Revocations,
  kind: keyof typeof PAUSE_MS,
  owner: string,
  wallMs: number,
): void {
  const sinceMs = wallMs - PAUSE_MS[kind];
  const own = credentials.filter((end) => end.owner === owner && kindOf(end) === kind && end.atMs > sinceMs);
  const eldest = own.toSorted((a, b) => a.atMs - b.atMs).at(-ENDS_BEFORE_PAUSE);
  if (eldest === undefined) return;
  const waitMs = Math.max(1, eldest.atMs - sinceMs);
  const what = kind === "app" ? "app passwords were revoked in two hours" : "sign-ins ended in ten minutes";
  throw new GroveError(
    "RATE_LIMITED",
    `${ENDS_BEFORE_PAUSE} of your ${what}; try again in ${Math.ceil(waitMs / 60_000)} minutes`,
    { metadata: { retry_after_ms: String(waitMs) } },
  );
}

/** The list with more ends, without those that nobody needs any more. */
export function listEnds(
  { credentials, allBeforeMs }: Revocations,
  ended: readonly EndedCredential[],
  wallMs: number,
): Revocations {
  const recent = credentials.filter(({ atMs }) => atMs > wallMs - ENDS_KEPT_MS);
  const listed = byUser([...recent, ...ended]).toSorted((a, b) => a.atMs - b.atMs);
  const beyond = listed.splice(0, Math.max(0, listed.length - ENDS_LISTED));
  // Tickets of ended credentials are from before their end.
  return { credentials: listed, allBeforeMs: Math.max(allBeforeMs, beyond.at(-1)?.atMs ?? 0) };
}

/** The same ends with at most ENDS_LISTED_PER_USER of one user and kind, and a line for the user's older ones. */
function byUser(ends: readonly EndedCredential[]): EndedCredential[] {
  const counts = new Map<string, number>();
  const beforeMs = new Map<string, number>();
  const listed: EndedCredential[] = [];
  for (const end of ends.toSorted((a, b) => a.atMs - b.atMs).toReversed()) {
    const { owner, atMs } = end;
    const isLine = owner !== undefined && end.credential === endsOfUser(owner);
    const key = `${kindOf(end)} ${owner}`;
    const count = (counts.get(key) ?? 0) + 1;
    if (!isLine) counts.set(key, count);
    if (owner === undefined || (!isLine && count <= ENDS_LISTED_PER_USER)) listed.push(end);
    else if (!beforeMs.has(owner)) beforeMs.set(owner, atMs);
  }
  for (const [owner, atMs] of beforeMs) listed.push({ credential: endsOfUser(owner), owner, atMs });
  return listed.toReversed();
}

function kindOf({ credential }: EndedCredential): string {
  return credential.slice(0, credential.indexOf(":"));
}
