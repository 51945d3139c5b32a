// The commands of the metadata store about people whose e-mail address has changed, as plans (D21, D34).
import { GroveError } from "#base/errors.ts";
import { dropSetting, putSetting, setting } from "#metaserver/sql/settings.ts";
import { all, get, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import {
  countChanges,
  findFormer,
  keepChange,
  nextSubjectVersion,
  requireNobodys,
} from "./address-changes.ts";
import { renameCredentials } from "./credential-commands.ts";
import { endDoorSessions } from "./door-session-commands.ts";
import { renameMember } from "./group-commands.ts";
import type { Moment } from "./node-commands.ts";
import { countMoves } from "./root-move-rows.ts";
import {
  ADDRESS_CHANGES_MAX,
  type AddressChange,
  type KnownElsewhere,
  type Subject,
  WANTED_CHANGE_LIFE_MS,
  WANTED_CHANGES_MAX,
  type WantedChange,
} from "./subject.ts";
import { renameNotices, renameUserStates } from "./user-state-commands.ts";

/** Settings, since a new table would shut out every MetaServer and console of the version before. */
const WANTED = "address_wanted:";
/** A person who waits is noted again at most this often. */
const NOTED_EVERY_MS = 3_600_000;
/** After that the former address may be wanted back. */
const FORMER_FOR_MS: number = 24 * 3_600_000;

/** Notes that a known person has come under a new address; undefined for a person who is not known. */
export function* wantAddress(
  now: Moment,
  to: string,
  { issuer, subject }: Subject,
): Plan<KnownElsewhere | undefined> {
  const known = yield* get<{ username: string }>(
    "SELECT username FROM subjects WHERE issuer = ? AND subject = ? ORDER BY version DESC, username LIMIT 1",
    issuer,
    subject,
  );
  if (known === undefined) return undefined;
  const { username: from } = known;
  const former = yield* findFormer(to);
  const isFormer =
    former !== undefined &&
    former.issuer === issuer &&
    former.subject === subject &&
    now.wallMs - Number(former.version) < FORMER_FOR_MS;
  if (!isFormer) yield* noteWanted(now, { from, to, issuer, subject });
  return { knownAs: from, isFormer };
}

/** Those who wait for an operator's word, the one who has come last first. */
export function* wantedChanges(now: Moment): Plan<WantedChange[]> {
  return (yield* allWanted()).filter(({ lastMs }) => now.wallMs - lastMs < WANTED_CHANGE_LIFE_MS);
}

/** Refuses what a person waits for; false when nobody does. They may come again. */
export function* refuseAddress(now: Moment, from: string, to: string): Plan<boolean> {
  const wanted = yield* findWanted(now, from, to);
  if (wanted === undefined) return false;
  yield* dropSetting(keyOf(wanted));
  return true;
}

/**
 * Gives a person who waits for it the new address, with everything that the store has under the former one.
 * Throws BAD_ARGUMENT, saying why, when that cannot be.
 */
export function* changeAddress(now: Moment, from: string, to: string): Plan<AddressChange> {
  const wanted = yield* findWanted(now, from, to);
  if (wanted === undefined)
    throw bad(`nobody known as ${from} has signed in as ${to}: see 'grove user renames'`);
  yield* requireFree(from, wanted);
  yield* requireRest(to);
  const version = yield* nextSubjectVersion(now.wallMs);
  const { issuer, subject } = wanted;
  const change: AddressChange = { username: to, issuer, subject, version, former: from };
  yield* renameRows(change);
  yield* renameMember(from, to);
  yield* renameCredentials(from, to);
  yield* endDoorSessions(from, undefined, Math.trunc(now.wallMs));
  yield* renameNotices(from, to);
  yield* renameUserStates(from, to, Math.trunc(now.wallMs));
  yield* keepChange(change);
  yield* dropSetting(keyOf(wanted));
  return change;
}

function* noteWanted(now: Moment, person: Omit<WantedChange, "firstMs" | "lastMs">): Plan<void> {
  const nowMs = Math.trunc(now.wallMs);
  const text = yield* setting(keyOf(person));
  const known = text === undefined ? undefined : (JSON.parse(text) as WantedChange);
  const isSame = known?.to === person.to && known.from === person.from;
  if (isSame && Math.abs(nowMs - known.lastMs) < NOTED_EVERY_MS) return;
  if (known === undefined) yield* makeRoom();
  const wanted: WantedChange = { ...person, firstMs: isSame ? known.firstMs : nowMs, lastMs: nowMs };
  yield* putSetting(keyOf(wanted), JSON.stringify(wanted));
}

function* makeRoom(): Plan<void> {
  const wanted = yield* allWanted();
  const oldest = wanted.at(-1);
  if (wanted.length >= WANTED_CHANGES_MAX && oldest !== undefined) yield* dropSetting(keyOf(oldest));
}

/** Those that are kept, outdated ones included, the latest first. */
function* allWanted(): Plan<WantedChange[]> {
  const rows = yield* all<{ value: string }>("SELECT value FROM settings WHERE key LIKE ?", `${WANTED}%`);
  const wanted = rows.map(({ value }) => JSON.parse(value) as WantedChange);
  return wanted.toSorted((a, b) => b.lastMs - a.lastMs);
}

function* findWanted(now: Moment, from: string, to: string): Plan<WantedChange | undefined> {
  return (yield* wantedChanges(now)).find((wanted) => wanted.from === from && wanted.to === to);
}

/** Throws when the former address is another person's by now. */
function* requireFree(from: string, wanted: WantedChange): Plan<void> {
  const owner = yield* get<Subject>("SELECT issuer, subject FROM subjects WHERE username = ?", from);
  if (owner?.issuer !== wanted.issuer || owner.subject !== wanted.subject)
    throw bad(`${from} is somebody else's by now; nothing was changed`);
  const taken = yield* get<Subject>("SELECT issuer, subject FROM subjects WHERE username = ?", wanted.to);
  if (taken !== undefined) throw bad(`${wanted.to} is another person's already; nothing was changed`);
  if ((yield* get("SELECT 1 AS one FROM roots WHERE owner = ?", wanted.to)) !== undefined)
    throw bad(`${wanted.to} has files of its own already; nothing was changed`);
}

/** Throws while anything is under way that goes by names. */
function* requireRest(to: string): Plan<void> {
  if ((yield* countMoves()) > 0)
    throw bad(
      "roots are moving between nodes: confirm or undo that first (grove root move); nothing was changed",
    );
  yield* requireNobodys(to);
  if ((yield* countChanges()) >= ADDRESS_CHANGES_MAX)
    throw new GroveError(
      "OVERLOADED",
      `there are ${ADDRESS_CHANGES_MAX} changed addresses, the most that are kept`,
      {
        metadata: { limit: String(ADDRESS_CHANGES_MAX) },
      },
    );
}

/** The person, the root and what is shared, under the new name. */
function* renameRows({ former, username, issuer, subject, version }: AddressChange): Plan<void> {
  yield* run("DELETE FROM subjects WHERE username = ?", former);
  yield* run(
    "INSERT INTO subjects (username, issuer, subject, version) VALUES (?, ?, ?, ?)",
    username,
    issuer,
    subject,
    version,
  );
  yield* run("UPDATE roots SET owner = ? WHERE owner = ?", username, former);
  yield* run('DELETE FROM grants WHERE owner = ? AND "user" = ?', former, username);
  yield* run("UPDATE grants SET owner = ? WHERE owner = ?", username, former);
  // What was shared with both names is shared once.
  yield* run(
    `UPDATE grants SET granted = 1 WHERE "user" = ? AND EXISTS (SELECT 1 FROM grants g WHERE g."user" = ?
       AND g.owner = grants.owner AND g.path = grants.path AND g.granted = 1)`,
    username,
    former,
  );
  yield* run(
    `DELETE FROM grants WHERE "user" = ? AND EXISTS (SELECT 1 FROM grants g WHERE g."user" = ?
       AND g.owner = grants.owner AND g.path = grants.path)`,
    former,
    username,
  );
  yield* run('UPDATE grants SET "user" = ? WHERE "user" = ?', username, former);
}

function keyOf({ issuer, subject }: Pick<WantedChange, "issuer" | "subject">): string {
  return `${WANTED}${issuer} ${subject}`;
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
