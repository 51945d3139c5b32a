// Opens the shared engine for a process: its lease in PostgreSQL, its cache of rows, its object store.
import { join } from "node:path";
import type pg from "pg";
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import { ObjectStore } from "#storage/object-store/object-store.ts";
import type { StoreSettings } from "#storage/object-store/store-settings.ts";
import { CommitClient } from "#storage/shared/commit-client.ts";
import { SHARED_LEASE_MS } from "#storage/shared/lease-holder.ts";
import { isHolder, makeRoot } from "#storage/shared/lease-rows.ts";
import { RowCache } from "#storage/shared/row-cache.ts";
import type { RowFacts } from "#storage/shared/row-facts.ts";
import { fetchRows } from "#storage/shared/row-fetch.ts";
import { connectToPrimary, type SharedAddress } from "#storage/shared/shared-connection.ts";
import { SharedLine } from "#storage/shared/shared-line.ts";
import { makeSharedTables } from "#storage/shared/shared-schema.ts";
import { SharedWriter } from "#storage/shared/shared-writer.ts";
import { clearRenamedRoots } from "#storage/shared/user-rename-rows.ts";
import { refusalOrOutage } from "#storage/shared/writer-refusals.ts";
import { DamageList } from "./damage-list.ts";
import { type EngineFolder, openEngineFolder } from "./data-folder.ts";
import type { Departures } from "./departures.ts";
import { EngineCluster } from "./engine-cluster.ts";
import { EngineRows, type StoredQuota } from "./engine-rows.ts";
import { HeldRoots, type OwnRoot } from "./held-roots.ts";
import { openMoves } from "./open-moves.ts";
import { DETACHING_ROOTS, type DetachingRoot, PurgeTurns } from "./purge-turns.ts";
import { RemovalPasses } from "./removal-passes.ts";
import { SharedRenames } from "./shared-renames.ts";
import { SharedStorage } from "./shared-storage.ts";

/** How long the database may take for an answer before the connection counts as broken. */
const ANSWER_MS = 5_000;
/** The same of a lease's renewal, as a part of the lease: two fit into it. */
const RENEW_ANSWER_PART = 0.25;
/** Pause between two tries of a commit whose outcome is unknown. */
const COMMIT_PAUSE_MS = 100;
/** Longest pass that removes objects, where another process goes on; longest change of an address or the tables. */
const PASS_ANSWER_MS = 600_000;
/** Longest question of the scrub or the recount: a slice of rows, or all counters of a root. */
const SLICE_ANSWER_MS = 60_000;

/** Options of the shared engine. */
export interface OpenSharedStorageOptions {
  /** The local folder: lock, identity, caches. */
  readonly directory: string;
  /** The servers of the database; the one that takes changes is used. */
  readonly database: readonly SharedAddress[];
  readonly store: StoreSettings;
  /** host:port that clients are sent to. */
  readonly address: string;
  /** Free bytes that the local disk keeps. */
  readonly reserveBytes: bigint;
  readonly hasLocalRoom: (bytes: number) => boolean;
  /** Takes in what is kept of users whose roots are about to be served here; others have the defaults. */
  readonly takeQuotas: (usernames: readonly string[], kept: readonly StoredQuota[]) => Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  readonly fraction: () => number;
  readonly logger: Logger;
  readonly leaseMs?: number | undefined;
  /** The node's cluster; empty before it has registered for the first time, undefined without a MetaServer. */
  readonly clusterId?: string | undefined;
}

/** The engine, open. */
export interface OpenedEngine {
  readonly storage: SharedStorage;
  readonly rows: EngineRows;
  readonly store: ObjectStore;
  readonly passes: RemovalPasses;
  /** Says which cluster the node has joined. Throws CLUSTER_MISMATCH, and ends all changes, for another one's engine. */
  readonly joined: (clusterId: string) => Promise<void>;
  /** How it goes, for /metrics. */
  readonly readings: () => EngineFigures;
}

/** Figures of the engine in this process. */
export interface EngineFigures {
  readonly leaseAgeMs: number;
  readonly roots: number;
  readonly cachedRows: number;
  readonly takenOverTotal: number;
  readonly storeRetriesTotal: number;
}

/**
 * Begins a lease, takes the roots of the process before, and serves them. Throws STORE_UNAVAILABLE or what pg
 * throws when the database does not answer, BAD_ARGUMENT for a bucket that must not be used, and CLUSTER_MISMATCH.
 */
export async function openSharedStorage(options: OpenSharedStorageOptions): Promise<OpenedEngine> {
  await using undo = new AsyncDisposableStack();
  const folder = await openEngineFolder(options.directory, options);
  undo.defer(() => folder.release());
  const base = await openPlaces(options, folder, undo);
  const cached = await openRows(options, { ...base, folder }, undo);
  const { rows, store, incarnation } = base;
  const { clock, logger } = options;
  const removalLine = base.lineOf(PASS_ANSWER_MS);
  const passes = new RemovalPasses({ rows, line: removalLine, store, incarnation, clock, logger });
  undo.defer(() => passes.stop());
  const { roots, writer, reader, facts, cache, events } = cached;
  const found = cache.preparePlain(DETACHING_ROOTS);
  const detaching = (): DetachingRoot[] => found.all() as unknown[] as DetachingRoot[];
  const purged = (owner: string): void => events.storage?.purged(owner);
  const purge = new PurgeTurns({ detaching, writer, roots, purged, clock, logger });
  undo.defer(() => purge.stop());
  undo.defer(() => roots.stop());
  const moves = openMoves({ ...base, instance: folder.instance, writer, roots, events });
  undo.defer(() => moves.close());
  events.departures = moves.departures;
  const renames = await SharedRenames.open({
    folder,
    line: base.lineOf(PASS_ANSWER_MS),
    writer,
    roots,
    clock,
  });
  await roots.start();
  const passLine = base.lineOf(SLICE_ANSWER_MS);
  const damaged = new DamageList({ line: passLine, roots, clock, logger });
  undo.defer(() => damaged.stop());
  damaged.renew();
  const closers = undo.move();
  const storage = new SharedStorage({
    dataId: folder.dataId,
    reader,
    facts,
    writer,
    roots,
    store,
    moves: moves.storage,
    renames,
    damaged,
    passLine,
    folder: folder.cacheFolder,
    clock,
    logger,
    makeRoot: (root) => newRoot(root, { base, instance: folder.instance, clock }),
    isHolder: (number) => base.line.run((client) => isHolder(client, folder.instance, number)),
    close: () => closers.disposeAsync(),
  });
  events.storage = storage;
  const readings = (): EngineFigures => ({
    leaseAgeMs: roots.leaseAgeMs,
    roots: roots.count,
    cachedRows: writer.cachedRows,
    takenOverTotal: roots.takenOverTotal,
    storeRetriesTotal: store.requests.retriesTotal,
  });
  const joined = (clusterId: string): Promise<void> =>
    base.cluster.join(clusterId).catch((error: unknown) => {
      if (isGroveError(error, "CLUSTER_MISMATCH")) storage.fail(error.message);
      throw error;
    });
  return { storage, rows, store, passes, joined, readings };
}

/** Makes a root that this process holds, unless it is there already. */
async function newRoot(
  { owner, rootId }: { owner: string; rootId: string },
  { base, instance, clock }: { base: Places; instance: string; clock: Clock },
): Promise<OwnRoot & { isHere: boolean }> {
  await base.takeQuotas([owner]);
  const root = { owner, rootId, instance, nowMs: Math.trunc(clock.wallMs()) };
  const made = await base.line
    .run((client) => makeRoot(client, root))
    .catch((error: unknown) => {
      throw refusalOrOutage(error);
    });
  return { owner, rootId, number: made.number, epoch: made.epoch, isHere: made.instance === instance };
}

/** The database and the bucket, both checked. */
interface Places {
  readonly connect: () => Promise<pg.Client>;
  readonly lineOf: (answerMs: number) => SharedLine;
  readonly line: SharedLine;
  readonly rows: EngineRows;
  readonly store: ObjectStore;
  readonly incarnation: string;
  readonly cluster: EngineCluster;
  readonly takeQuotas: (owners: string[]) => Promise<void>;
}

async function openPlaces(
  options: OpenSharedStorageOptions,
  folder: EngineFolder,
  undo: AsyncDisposableStack,
): Promise<Places> {
  const { database, clock } = options;
  const connect = () => connectToPrimary(database);
  const lineOf = (answerMs: number): SharedLine => {
    const made = new SharedLine({ connect, clock, answerMs });
    undo.defer(() => made.close());
    return made;
  };
  const maker = lineOf(PASS_ANSWER_MS);
  await maker.run((client) => makeSharedTables(client, database[0]?.schema ?? ""));
  maker.close();
  const line = lineOf(ANSWER_MS);
  const rows = new EngineRows(line);
  const cluster = await EngineCluster.open(rows, options.clusterId);
  const store = await ObjectStore.open({
    ...options,
    settings: options.store,
    blocks: rows,
    folder: folder.cacheFolder,
  });
  undo.defer(() => store.close());
  await store.check();
  const incarnation = await rows.incarnation();
  await store.marker.own(incarnation, await rows.hasChunks());
  const takeQuotas = async (owners: string[]): Promise<void> =>
    options.takeQuotas(owners, await rows.quotas(owners));
  return { connect, lineOf, line, rows, store, incarnation, cluster, takeQuotas };
}

/** The cached rows and their writer, under the process's lease. */
interface CachedRows {
  readonly cache: RowCache;
  readonly reader: SnapshotReader;
  readonly facts: RowFacts;
  readonly writer: SharedWriter;
  readonly roots: HeldRoots;
  /** What hears of changes, once it is there. */
  readonly events: { storage?: SharedStorage; departures?: Departures };
}

async function openRows(
  options: OpenSharedStorageOptions,
  places: Places & { readonly folder: EngineFolder },
  undo: AsyncDisposableStack,
): Promise<CachedRows> {
  const { clock, random } = options;
  const { folder, connect, lineOf, line, rows, store } = places;
  const cache = new RowCache(join(folder.cacheFolder, "rows.db"), await rows.idRange());
  undo.defer(() => cache.close());
  const { db, facts } = cache.openReader();
  const reader = new SnapshotReader(db, (error) => {
    throw error;
  });
  undo.defer(() => reader.close());
  const groupId = (): string => ulid(clock, random);
  const commits = new CommitClient({
    connect,
    clock,
    groupId,
    answerMs: ANSWER_MS,
    pauseMs: COMMIT_PAUSE_MS,
  });
  const fetchLine = lineOf(ANSWER_MS);
  const events: CachedRows["events"] = {};
  const writer = new SharedWriter({
    cache,
    commits,
    instance: folder.instance,
    fetch: (wanted) => fetchLine.run((client) => fetchRows(client, wanted)),
    changed: () => reader.renew(),
    sharesChanged: (owners) => events.storage?.sharesChanged(owners),
    forgot: () => events.storage?.forgot(),
    freshened: async (numbers) => {
      const renamed = await fetchLine.run((client) => clearRenamedRoots(client, numbers));
      events.storage?.sharesChanged(renamed.flatMap((number) => roots.withNumber(number)?.owner ?? []));
    },
    lost: (numbers) => roots.lose(numbers),
    cacheFailed: (error) => options.logger.error("engine.cache_failed", { error: errorText(error) }),
  });
  undo.defer(() => writer.close());
  // First, so that a commit under way waits for no answer.
  undo.defer(() => commits.close());
  const { leaseMs = SHARED_LEASE_MS } = options;
  const roots: HeldRoots = new HeldRoots({
    ...options,
    instance: folder.instance,
    before: folder.before,
    line,
    mayTake: () => places.cluster.mayTake,
    leaseLine: lineOf(leaseMs * RENEW_ANSWER_PART),
    taking: async (taken) => {
      await places.takeQuotas(taken.map(({ owner }) => owner));
      await Promise.all(taken.map(({ owner }) => writer.know(owner)));
      await events.departures?.taken(taken);
    },
    left: async (roots) => {
      events.departures?.lost(roots);
      await Promise.all(roots.map(({ number }) => writer.release(number)));
    },
    changed: ({ gained, lost }) => {
      events.departures?.lost(lost);
      events.storage?.rootsChanged(gained, lost);
    },
    ended: (reason) => {
      events.storage?.fail(reason);
      commits.close();
      void store.close();
    },
  });
  return { cache, reader, facts, writer, roots, events };
}
