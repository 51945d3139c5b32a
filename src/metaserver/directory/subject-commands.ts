// The commands of the metadata store about the persons behind e-mail addresses (D21), as plans.
import { GroveError } from "#base/errors.ts";
import { SUBJECTS_LISTED_MAX } from "#base/limits.ts";
import { all, get, type Plan, rowsOfMarks, run } from "#metaserver/sql/sql-plan.ts";
import { wantAddress } from "./address-change-commands.ts";
import { addressChanges, nextSubjectVersion, requireNobodys } from "./address-changes.ts";
import type { NodeCaller } from "./node-caller.ts";
import { type Moment, requireCaller } from "./node-commands.ts";
import type {
  KnownElsewhere,
  Rebinding,
  ReboundRecord,
  Subject,
  SubjectRecord,
  SubjectsAfter,
} from "./subject.ts";

/** Addresses that one statement rebinds. */
const REBOUND_AT_ONCE = 500;

const COLUMNS = "username, issuer, subject, version";

/** True when the address is this person's; undefined when unknown, or kept for that issuer's first. */
export function* knownSubject(_now: Moment, username: string, person: Subject): Plan<boolean | undefined> {
  const row = yield* get<Subject>("SELECT issuer, subject FROM subjects WHERE username = ?", username);
  if (row === undefined || row.issuer !== person.issuer) return row === undefined ? undefined : false;
  return row.subject === "" ? undefined : row.subject === person.subject;
}

/**
 * True when the address belongs to this person; an unknown address is recorded as theirs, unless they are known
 * under another one. Throws STARTING as `requireNobodys` does.
 */
export function* admitSubject(
  now: Moment,
  username: string,
  person: Subject,
): Plan<boolean | KnownElsewhere> {
  const known = yield* knownSubject(now, username, person);
  if (known !== undefined) return known;
  if ((yield* findSubject(now, username)) === undefined) {
    const elsewhere = yield* wantAddress(now, username, person);
    if (elsewhere !== undefined) return elsewhere;
    yield* requireNobodys(username);
  }
  yield* run(
    `INSERT INTO subjects (username, issuer, subject) VALUES (?, ?, ?)
     ON CONFLICT (username) DO UPDATE SET subject = excluded.subject WHERE subjects.subject = ''`,
    username,
    person.issuer,
    person.subject,
  );
  return true;
}

/** The person behind one address; undefined when unknown. */
export function* findSubject(_now: Moment, username: string): Plan<SubjectRecord | undefined> {
  return yield* get<SubjectRecord>(`SELECT ${COLUMNS} FROM subjects WHERE username = ?`, username);
}

/** The persons of one issuer, by address, after a given one. */
export function* subjectsOf(_now: Moment, issuer: string, afterUsername = ""): Plan<SubjectRecord[]> {
  return yield* all<SubjectRecord>(
    `SELECT ${COLUMNS} FROM subjects WHERE issuer = ? AND username > ? ORDER BY username LIMIT ?`,
    issuer,
    afterUsername,
    SUBJECTS_LISTED_MAX,
  );
}

/** Rebound and changed addresses in the order of their versions, after a given one. */
export function* reboundSubjects(
  _now: Moment,
  caller: NodeCaller,
  after: SubjectsAfter,
): Plan<ReboundRecord[]> {
  yield* requireCaller(caller);
  const rebound = yield* all<SubjectRecord>(
    `SELECT ${COLUMNS} FROM subjects WHERE version > ? OR (version = ? AND version > 0 AND username > ?)
     ORDER BY version, username LIMIT ?`,
    after.version,
    after.version,
    after.username,
    SUBJECTS_LISTED_MAX,
  );
  // Each change has a version of its own.
  const changed = yield* addressChanges(after.version);
  const isChange = new Set(changed.map(({ version }) => version));
  return [...changed, ...rebound.filter(({ version }) => !isChange.has(version))]
    .toSorted((a, b) => Number(a.version - b.version) || (a.username < b.username ? -1 : 1))
    .slice(0, SUBJECTS_LISTED_MAX);
}

/**
 * Rebinds addresses to other persons, all or none, and returns the version. Throws BAD_ARGUMENT when one
 * belongs to another than expected.
 */
export function* rebindSubjects(
  { wallMs }: Pick<Moment, "wallMs">,
  rebindings: readonly Rebinding[],
): Plan<bigint> {
  const version = yield* nextSubjectVersion(wallMs);
  for (let at = 0; at < rebindings.length; at += REBOUND_AT_ONCE)
    yield* rebindSome(rebindings.slice(at, at + REBOUND_AT_ONCE), version);
  return version;
}

/** The same for as many as one statement takes: one for each would take longer than the store waits for a command. */
function* rebindSome(rebindings: readonly Rebinding[], version: bigint): Plan<void> {
  const rows = rowsOfMarks(rebindings.length, 5);
  // SQLite and PostgreSQL name the columns of VALUES alike.
  const changed = yield* run(
    `UPDATE subjects SET issuer = column4, subject = column5, version = ? FROM (VALUES ${rows}) AS rebound
     WHERE subjects.username = column1 AND subjects.issuer = column2 AND subjects.subject = column3`,
    version,
    ...rebindings.flatMap(({ username, from, to }) => [
      username,
      from.issuer,
      from.subject,
      to.issuer,
      to.subject,
    ]),
  );
  if (changed === rebindings.length) return;
  const names = rebindings.map(({ username }) => username);
  const own = yield* all<{ username: string }>(
    `SELECT username FROM subjects WHERE version = ? AND username IN ${rowsOfMarks(1, names.length)}`,
    version,
    ...names,
  );
  const rebound = new Set(own.map(({ username }) => username));
  const [other = "one of them"] = names.filter((username) => !rebound.has(username));
  throw new GroveError("BAD_ARGUMENT", `${other} is somebody else's by now; nothing was changed`);
}
