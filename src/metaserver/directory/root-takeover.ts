// Takes over a registering node's list of roots, without overwriting newer state of the store (D19).

import { lastEpochBefore } from "#base/limits.ts";
import { putSettings, settingsOf } from "#metaserver/sql/settings.ts";
import { all, batchesOf, type Plan, rowsOfMarks, run, type SqlValue } from "#metaserver/sql/sql-plan.ts";
import type { HeldRoot, RootConflict } from "./directory.ts";
import { confirmListed } from "./missing-lists.ts";
import { followSources } from "./root-move-rows.ts";
import type { SubjectRecord } from "./subject.ts";

interface RecordedRoot {
  readonly owner: string;
  readonly root_id: string;
  readonly fs_id: string;
  readonly held: bigint;
  readonly version: bigint;
}

/** Roots or grants that one statement takes: far fewer values than any database's limit. */
const BATCH = 500;

/**
 * Records the roots and grants of a node, or a page of them. Adds a root that the store lacks, which rebuilds
 * a lost store. A root placed elsewhere yields while no node holds it there, when its node was asked for it and
 * did not list it, and to a newer lease of a shared engine. Every other difference is a conflict, and the
 * store's state stays.
 */
export function* registerRoots(
  fsId: string,
  roots: readonly HeldRoot[],
  nowWallMs: number,
): Plan<RootConflict[]> {
  const conflicts: RootConflict[] = [];
  const seen = new Map<string, HeldRoot>();
  for (const batch of batchesOf(roots, BATCH)) {
    const recorded = yield* recordedOf(batch);
    const leases = yield* leasesOf(batch);
    const changed: HeldRoot[] = [];
    const news: HeldRoot[] = [];
    for (const held of batch) {
      const known = inTheWay(held, { recorded, seen, leases, fsId });
      if (known !== undefined) {
        conflicts.push(known);
        continue;
      }
      seen.set(held.owner, held);
      seen.set(held.rootId, held);
      const row = recorded.get(held.owner);
      const isSame = row?.root_id === held.rootId && row.fs_id === fsId;
      const isNews = !isSame || held.version > row.version;
      if (isNews || row?.held === 0n) changed.push(held);
      if (isNews) news.push(held);
    }
    yield* forgetFormer(
      changed.flatMap(({ owner, rootId }) => {
        const former = recorded.get(rootId);
        return former === undefined || former.owner === owner ? [] : [former];
      }),
    );
    if (changed.length > 0) yield* recordRoots(fsId, changed, nowWallMs);
    yield* confirmListed(
      batch.flatMap(({ owner }) =>
        seen.has(owner) && (recorded.get(owner)?.held ?? 0n) > 1n ? [owner] : [],
      ),
    );
    const takenOver = changed.flatMap(({ owner, leaseEpoch }) => {
      const before = recorded.get(owner)?.fs_id;
      return leaseEpoch === undefined || before === undefined || before === fsId ? [] : [{ owner, before }];
    });
    if (takenOver.length > 0) yield* followSources(fsId, takenOver);
    if (news.length > 0) yield* recordGrants(news);
    yield* recordLeases(
      batch.filter((held) => seen.get(held.owner) === held),
      leases,
    );
    yield* recordSubjects(batch.filter((held) => seen.get(held.owner) === held));
  }
  return conflicts;
}

/** By owner and by root id. */
function* recordedOf(batch: readonly HeldRoot[]): Plan<Map<string, RecordedRoot>> {
  const marks = batch.map(() => "?").join(", ");
  const rows = yield* all<RecordedRoot>(
    `SELECT owner, root_id, fs_id, held, version FROM roots WHERE owner IN (${marks}) OR root_id IN (${marks})`,
    ...batch.map(({ owner }) => owner),
    ...batch.map(({ rootId }) => rootId),
  );
  return new Map(rows.flatMap((row) => [[row.owner, row] as const, [row.root_id, row] as const]));
}

/** The conflict of a root; undefined for none. */
function inTheWay(
  held: HeldRoot,
  at: {
    readonly recorded: ReadonlyMap<string, RecordedRoot>;
    readonly seen: ReadonlyMap<string, HeldRoot>;
    readonly leases: ReadonlyMap<string, bigint>;
    readonly fsId: string;
  },
): RootConflict | undefined {
  const { owner, rootId } = held;
  const conflict = (recordedRootId: string, recordedFsId: string): RootConflict => ({
    owner,
    heldRootId: rootId,
    recordedRootId,
    recordedFsId,
  });
  const twice = at.seen.get(owner) ?? at.seen.get(rootId);
  if (twice !== undefined) return conflict(twice.rootId, at.fsId);
  const sameId = at.recorded.get(rootId);
  // Where lists are asked for, the store is an older copy, which knows the owner by an earlier name.
  const isAnothers = sameId !== undefined && sameId.owner !== owner && sameId.held <= 1n;
  if (isAnothers) return conflict(sameId.root_id, sameId.fs_id);
  const known = at.recorded.get(owner);
  const isSame = known?.root_id === rootId && known.fs_id === at.fsId;
  if (known?.root_id === rootId && isTakenOver(held, at.leases)) return undefined;
  return known === undefined || isSame || known.held !== 1n
    ? undefined
    : conflict(known.root_id, known.fs_id);
}

/** Forgets roots under names that their owners had before; what they share comes with the list. */
function* forgetFormer(formers: readonly RecordedRoot[]): Plan<void> {
  if (formers.length === 0) return;
  const owners = formers.map(({ owner }) => owner);
  const marks = owners.map(() => "?").join(", ");
  yield* run(`DELETE FROM grants WHERE owner IN (${marks})`, ...owners);
  yield* run(`DELETE FROM roots WHERE owner IN (${marks})`, ...owners);
}

function* recordRoots(fsId: string, roots: readonly HeldRoot[], nowWallMs: number): Plan<void> {
  yield* run(
    `INSERT INTO roots (owner, root_id, fs_id, held, version, assigned_ms) VALUES ${rowsOfMarks(roots.length, 6)}
     ON CONFLICT (owner) DO UPDATE SET root_id = excluded.root_id, fs_id = excluded.fs_id, held = 1,
       version = excluded.version`,
    ...roots.flatMap((root): SqlValue[] => [root.owner, root.rootId, fsId, 1, root.version, nowWallMs]),
  );
}

/**
 * Replaces every grant up to the list's version, ended ones too: an older state no longer counts. A newer
 * grant came by a message of its own and stays.
 */
function* recordGrants(roots: readonly HeldRoot[]): Plan<void> {
  const version = "(SELECT r.version FROM roots r WHERE r.owner = grants.owner)";
  yield* run(
    `DELETE FROM grants
     WHERE owner IN (${roots.map(() => "?").join(", ")}) AND version <= ${version}`,
    ...roots.map(({ owner }) => owner),
  );
  const grants = new Map<string, SqlValue[]>();
  for (const { owner, version: upTo, grants: granted } of roots) {
    for (const { user, path } of granted) {
      grants.set(`${owner}\0${user}\0${path}`, [owner, user, path, upTo, 1]);
    }
  }
  for (const batch of batchesOf([...grants.values()], BATCH)) {
    yield* run(
      `INSERT INTO grants (owner, "user", path, version, granted) VALUES ${rowsOfMarks(batch.length, 5)}
       ON CONFLICT (owner, "user", path) DO UPDATE SET version = excluded.version, granted = 1
       WHERE excluded.version >= grants.version`,
      ...batch.flat(),
    );
  }
}

/**
 * Records the persons of roots' owners by the node that guards the files (D21), unless an operator has
 * rebound them since.
 */
function* recordSubjects(roots: readonly HeldRoot[]): Plan<void> {
  const told = roots.flatMap(({ owner, subject }) =>
    subject === undefined || subject.subject === "" ? [] : [{ username: owner, ...subject }],
  );
  if (told.length === 0) return;
  const rows = yield* all<SubjectRecord>(
    `SELECT username, issuer, subject, version FROM subjects WHERE username IN (${told.map(() => "?").join(", ")})`,
    ...told.map(({ username }) => username),
  );
  const recorded = new Map(rows.map((row) => [row.username, row]));
  const news = told.filter(({ username, issuer, subject, version = 0n }) => {
    const row = recorded.get(username);
    if (row === undefined || version > row.version) return true;
    return version === row.version && (row.issuer !== issuer || row.subject !== subject);
  });
  if (news.length === 0) return;
  yield* run(
    `INSERT INTO subjects (username, issuer, subject, version) VALUES ${rowsOfMarks(news.length, 4)}
     ON CONFLICT (username) DO UPDATE SET issuer = excluded.issuer, subject = excluded.subject, version = excluded.version`,
    ...news.flatMap(({ username, issuer, subject, version = 0n }) => [username, issuer, subject, version]),
  );
}

// The epochs of roots on a shared engine: the node that took a root over overrules the lists of those before.

/** A root as its node lists it. */
interface LeasedRoot {
  readonly rootId: string;
  readonly leaseEpoch?: bigint | undefined;
}

/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const PREFIX = "root_lease:";

/** The highest epochs that were registered, by root id; a root on a node's own disk has none. */
function* leasesOf(roots: readonly LeasedRoot[]): Plan<Map<string, bigint>> {
  const keys = roots.flatMap(({ rootId, leaseEpoch }) => (leaseEpoch === undefined ? [] : [PREFIX + rootId]));
  const epochs = yield* settingsOf(keys);
  return new Map(Array.from(epochs, ([key, value]) => [key.slice(PREFIX.length), BigInt(value)]));
}

/** True for a root that its lease gives to the node that registers it, wherever the store places it. */
function isTakenOver(held: LeasedRoot, leases: ReadonlyMap<string, bigint>): boolean {
  return held.leaseEpoch !== undefined && held.leaseEpoch > (leases.get(held.rootId) ?? 0n);
}

/** Remembers the epochs of roots that were recorded. */
function* recordLeases(roots: readonly LeasedRoot[], leases: ReadonlyMap<string, bigint>): Plan<void> {
  const news = roots.filter((held) => isTakenOver(held, leases));
  if (news.length > 0) yield* putLeases(news.map(({ rootId, leaseEpoch = 0n }) => [rootId, leaseEpoch]));
}

/** No epoch of a root counts any more that it had before it moved, to the shared engine or from there. */
export function* endLeases({ rootId, number }: { rootId: string; number: number }): Plan<void> {
  yield* putLeases([[rootId, BigInt(lastEpochBefore(number))]]);
}

function* putLeases(leases: readonly (readonly [rootId: string, epoch: bigint])[]): Plan<void> {
  yield* putSettings(leases.map(([rootId, epoch]) => [PREFIX + rootId, String(epoch)]));
}
