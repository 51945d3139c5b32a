// Versions of addresses in the metadata store, confirmed changes, and which nodes have carried them out (D34).
import { GroveError } from "#base/errors.ts";
import { putSetting, setting } from "#metaserver/sql/settings.ts";
import { all, get, type Plan } from "#metaserver/sql/sql-plan.ts";
import type { AddressChange, ChangeUnderWay } from "./subject.ts";

/** Settings, since a new table would shut out every MetaServer and console of the version before. */
const CHANGED = "address_changed:";
const FORMER = "address_former:";
const HEARD = "address_changes_heard:";
/** Digits of a version in a key, so that keys sort as versions do. */
const VERSION_DIGITS = 19;

/** The version of the last rebinding; 0 when there is none. */
export function* newestSubject(): Plan<bigint> {
  const row = yield* get<{ newest: bigint | null }>("SELECT MAX(version) AS newest FROM subjects");
  return row?.newest ?? 0n;
}

/** The version of the next rebinding. A restored store gives none twice, since time goes on. */
export function* nextSubjectVersion(wallMs: number): Plan<bigint> {
  const newest = yield* newestSubject();
  const wall = BigInt(Math.trunc(wallMs));
  return newest >= wall ? newest + 1n : wall;
}

/** Keeps a confirmed change. */
export function* keepChange(change: AddressChange): Plan<void> {
  const text = JSON.stringify({ ...change, version: String(change.version) });
  yield* putSetting(CHANGED + String(change.version).padStart(VERSION_DIGITS, "0"), text);
  yield* putSetting(FORMER + change.former, text);
}

/** How many are kept. */
export function* countChanges(): Plan<number> {
  const row = yield* get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM settings WHERE key LIKE ?",
    `${CHANGED}%`,
  );
  return Number(row?.count ?? 0n);
}

/** The last change of a person who had an address before. */
export function* findFormer(username: string): Plan<AddressChange | undefined> {
  const text = yield* setting(FORMER + username);
  return text === undefined ? undefined : changeOf(text);
}

/** Confirmed changes after a version, in order. */
export function* addressChanges(afterVersion = 0n): Plan<AddressChange[]> {
  const rows = yield* all<{ value: string }>(
    "SELECT value FROM settings WHERE key LIKE ? AND key > ? ORDER BY key",
    `${CHANGED}%`,
    CHANGED + String(afterVersion).padStart(VERSION_DIGITS, "0"),
  );
  return rows.map(({ value }) => changeOf(value)).filter(({ version }) => version > afterVersion);
}

/** Confirmed changes that some node has not carried out yet. */
export function* changesUnderWay(): Plan<ChangeUnderWay[]> {
  const changes = yield* addressChanges();
  const heard = yield* heardByNode();
  const known = changes.length === 0 ? [] : yield* nodeIds();
  return changes
    .map((change) => ({ ...change, waitsFor: behind(change, heard, known) }))
    .filter(({ waitsFor }) => waitsFor.length > 0);
}

/** Notes up to which version a node has carried everything out. */
export function* noteChangesHeard(fsId: string, version: bigint): Plan<void> {
  const heard = BigInt((yield* setting(HEARD + fsId)) ?? "0");
  if (version > heard) yield* putSetting(HEARD + fsId, String(version));
}

/**
 * Throws STARTING for an address that was another's, until every node has given what it had under it to its
 * person: a newcomer would find it.
 */
export function* requireNobodys(username: string): Plan<void> {
  const change = yield* findFormer(username);
  if (change === undefined) return;
  const waitsFor = behind(change, yield* heardByNode(), yield* nodeIds());
  if (waitsFor.length === 0) return;
  throw new GroveError(
    "STARTING",
    `this address was somebody else's until a moment ago, and ${waitsFor.join(", ")} has yet to hear of it; try again`,
    { metadata: { retry_after_ms: "5000" } },
  );
}

/** The name that a node means by one which has carried out the changes up to a version; 0 for an older node. */
export function* namesUpTo(version = 0n): Plan<(username: string) => string> {
  const missed = yield* addressChanges(version);
  return (username) =>
    missed.reduce((name, change) => (name === change.former ? change.username : name), username);
}

function* nodeIds(): Plan<string[]> {
  return (yield* all<{ fs_id: string }>("SELECT fs_id FROM nodes ORDER BY fs_id")).map((row) => row.fs_id);
}

function* heardByNode(): Plan<ReadonlyMap<string, bigint>> {
  const rows = yield* all<{ key: string; value: string }>(
    "SELECT key, value FROM settings WHERE key LIKE ?",
    `${HEARD}%`,
  );
  return new Map(rows.map(({ key, value }) => [key.slice(HEARD.length), BigInt(value)]));
}

function behind(
  { version }: AddressChange,
  heard: ReadonlyMap<string, bigint>,
  known: readonly string[],
): string[] {
  return known.filter((fsId) => (heard.get(fsId) ?? 0n) < version);
}

function changeOf(text: string): AddressChange {
  const { version, ...rest } = JSON.parse(text) as Omit<AddressChange, "version"> & { version: string };
  return { ...rest, version: BigInt(version) };
}
