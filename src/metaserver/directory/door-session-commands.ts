// The commands of the metadata store about browsers' sessions at doors, as plans of one transaction each.
import { GroveError } from "#base/errors.ts";
import { putJson, setting } from "#metaserver/sql/settings.ts";
import type { Plan } from "#metaserver/sql/sql-plan.ts";
import {
  dropRecords,
  endAppPasswords,
  endCredentials,
  requireFewEnds,
  revocations,
  usedAtDoor,
  usedSince,
  useNoted,
} from "./credential-commands.ts";
import type { AppPasswordRecord, DoorSessionRecord } from "./credential-store.ts";

/** Sessions of one user; one more ends the oldest. */
export const DOOR_SESSIONS_PER_PERSON = 20;

const SESSION = "door_session:";
const OWNED = "door_sessions_of:";

/** Keeps a new one. The same id never opens a second: it stands for the ID token. */
export function* addDoorSession(record: DoorSessionRecord): Plan<void> {
  const ends = yield* revocations();
  const isEnded = ends.credentials.some(({ credential }) => credential === credentialOf(record));
  if (isEnded || (yield* findDoorSession(record.id)) !== undefined)
    throw new GroveError("TOKEN_REJECTED", "this sign-in was used already; sign in again");
  requireFewEnds(ends, "browser", record.owner, record.createdMs);
  const own = yield* doorSessionsOf(record.owner);
  const live = own.filter(({ endsMs }) => endsMs > record.createdMs);
  const kept = live.slice(-(DOOR_SESSIONS_PER_PERSON - 1));
  yield* drop(
    own.filter((one) => !kept.includes(one)),
    record.createdMs,
  );
  yield* putJson(SESSION + record.id, record);
  yield* putJson(OWNED + record.owner, [...kept.map(({ id }) => id), record.id]);
}

/** One by its id. */
export function* findDoorSession(id: string): Plan<DoorSessionRecord | undefined> {
  const text = yield* setting(SESSION + id);
  return text === undefined ? undefined : (JSON.parse(text) as DoorSessionRecord);
}

/** Notes a use; one that has ended meanwhile stays so. */
export function* noteDoorSessionUse(id: string, door: string, wallMs: number): Plan<void> {
  const record = yield* findDoorSession(id);
  if (record !== undefined) yield* putJson(SESSION + id, useNoted(record, door, wallMs));
}

/** Ends these sessions of a user, or all of them. */
export function* endDoorSessions(
  owner: string,
  ids: readonly string[] | undefined,
  wallMs: number,
): Plan<DoorSessionRecord[]> {
  const own = yield* doorSessionsOf(owner);
  const ended = own.filter(({ id }) => ids === undefined || ids.includes(id));
  yield* drop(ended, wallMs);
  return ended;
}

/** Ends all that was used at a door since a moment; returns the app passwords. */
export function* revokeUsedAtDoor(door: string, sinceMs: number, wallMs: number): Plan<AppPasswordRecord[]> {
  const passwords = yield* usedAtDoor(door, sinceMs);
  yield* endAppPasswords(passwords, wallMs);
  yield* drop(yield* usedSince<DoorSessionRecord>(SESSION, door, sinceMs), wallMs);
  return passwords;
}

/** All of a user, the oldest first. */
export function* doorSessionsOf(owner: string): Plan<DoorSessionRecord[]> {
  const text = yield* setting(OWNED + owner);
  const records: DoorSessionRecord[] = [];
  for (const id of text === undefined ? [] : (JSON.parse(text) as string[])) {
    const record = yield* findDoorSession(id);
    if (record?.owner === owner) records.push(record);
  }
  return records;
}

function* drop(records: readonly DoorSessionRecord[], wallMs: number): Plan<void> {
  yield* dropRecords(records, { record: SESSION, owned: OWNED });
  yield* endCredentials(
    records.map((record) => ({ credential: credentialOf(record), owner: record.owner, atMs: wallMs })),
    wallMs,
  );
}

function credentialOf({ id }: DoorSessionRecord): string {
  return `browser:${id}`;
}
