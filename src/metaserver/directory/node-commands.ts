// The commands of the metadata store about nodes, their leases and the cluster, as plans (D19).
import { GroveError } from "#base/errors.ts";
import { NODES_MAX } from "#base/limits.ts";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import { dropSetting, putSetting, setting } from "#metaserver/sql/settings.ts";
import { all, get, getLocked, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import { namesUpTo, newestSubject } from "./address-changes.ts";
import type {
  Heartbeat,
  HeartbeatOutcome,
  HeldRoot,
  Lease,
  NodeRecord,
  NodeRegistration,
  RootConflict,
} from "./directory.ts";
import {
  askForList,
  awaitAllLists,
  awaitRestOfList,
  beginList,
  endList,
  giveUpList,
  isListAwaited,
} from "./missing-lists.ts";
import type { NodeOfCall } from "./node-caller.ts";
import {
  ENGINE_PREFIX,
  epochInTheWay,
  isOfAnother,
  mayBeat,
  mayHold,
  maySpeak,
  type NodeRow,
  nextEpoch,
  ON_ENGINE,
  requireEpoch,
  toNodeRecord,
} from "./node-row.ts";
import { requireNotRemoved } from "./removed-nodes.ts";
import type { FoundCopy } from "./root-move.ts";
import {
  askHolders,
  departedFrom,
  departuresTo,
  findCopies,
  lostMoves,
  movingOwners,
  noteDepartures,
  noteRivals,
  takeDepartures,
} from "./root-move-rows.ts";
import { noteRootNumbers } from "./root-numbers.ts";
import { registerRoots } from "./root-takeover.ts";
import { forgetStaged, isPaged, stagedPage, stagePage } from "./staged-pages.ts";

/** Time at the moment of a command: by one clock for all users of the store. */
export interface Moment {
  readonly wallMs: number;
  /** True while the node's lease runs. */
  isLive(node: Pick<NodeRow, "fs_id" | "last_seen_ms">): boolean;
  /** Records a heartbeat or registration of this moment, which the row holds as well. */
  renew(fsId: string): void;
  /** Remaining wait of new roots for the FileServers' lists, in milliseconds; the setting holds its begin. */
  placementWaitMs(heldSinceWallMs: number): number;
  /** Begins that wait; the setting holds that as well. */
  holdPlacement(): void;
}

const NODE_COLUMNS = `n.*, (SELECT COUNT(*) FROM roots r WHERE r.fs_id = n.fs_id) AS root_count, ${ON_ENGINE}`;
/** The cluster's id. */
export function* clusterId(_now: Moment): Plan<string | undefined> {
  return yield* setting("cluster_id");
}

/** Gives a store without an id the one that the cluster has. Throws CLUSTER_MISMATCH. */
export function* adoptClusterId(now: Moment, id: string): Plan<void> {
  const own = yield* setting("cluster_id");
  if (own === undefined) yield* adopt(now, id);
  else if (own !== id) throw clusterMismatch(own);
}

/** Registers a node and begins its next epoch, or keeps a page until its registration's last has come. */
export function* register(now: Moment, registration: NodeRegistration): Plan<Lease> {
  const id = yield* joinCluster(now, registration.clusterId);
  const known = yield* getLocked<NodeRow>(
    "SELECT n.*, 0 AS root_count FROM nodes n WHERE n.fs_id = ?",
    registration.fsId,
  );
  yield* requireNotRemoved(registration.fsId, registration.speaker);
  if (known !== undefined) {
    maySpeak(known, registration.speaker);
    if (now.isLive(known)) mayHold(known, registration);
    const heldEpoch = epochInTheWay(known, registration);
    if (heldEpoch !== undefined) return { clusterId: id, epoch: 0, conflicts: [], heldEpoch };
  } else {
    const nodes = yield* get<{ count: bigint }>("SELECT COUNT(*) AS count FROM nodes");
    if (nodes !== undefined && nodes.count >= NODES_MAX) {
      throw new GroveError("OVERLOADED", `a cluster has at most ${NODES_MAX} nodes`, {
        metadata: { limit: String(NODES_MAX) },
      });
    }
  }
  yield* noteRootNumbers(registration.roots);
  yield* noteDepartures(registration.fsId, registration.departed);
  let pages = 0;
  if (isPaged(registration)) {
    const { nextPage, isWhole } = yield* stagePage(now.wallMs, registration);
    if (!isWhole) {
      if (known === undefined) yield* awaitRestOfList(registration.fsId);
      return { clusterId: id, epoch: 0, conflicts: [], nextPage };
    }
    pages = registration.page.page;
  }
  const epoch = nextEpoch(known, registration);
  const asked = yield* beginList(registration.fsId);
  const conflicts: RootConflict[] = [];
  const copies: FoundCopy[] = [];
  const moving = movingOwners();
  const departures = yield* departuresTo(registration.fsId);
  const lost = yield* lostMoves();
  const nameOf = yield* namesUpTo(registration.namesVersion);
  for (let page = 0; page <= pages; page++) {
    const roots = page < pages ? yield* stagedPage(registration, page) : registration.roots;
    const named = roots.map((root) => underNewNames(root, nameOf));
    yield* takeDepartures(registration.fsId, departures, named);
    yield* noteRivals(now, registration.fsId, lost, named);
    const twice = yield* registerRoots(registration.fsId, named, now.wallMs);
    copies.push(...(yield* findCopies(now, registration.fsId, { roots: named, conflicts: twice, moving })));
    conflicts.push(...twice);
  }
  yield* endList(registration.fsId, asked, now.wallMs);
  yield* askHolders(registration.fsId, known, conflicts);
  yield* putNode(now, registration, { epoch, rootsRefused: conflicts.length });
  yield* noteEngine(registration.fsId, registration.onEngine === true);
  yield* forgetStaged(registration.fsId);
  now.renew(registration.fsId);
  return { clusterId: id, epoch, conflicts, ...(copies.length === 0 ? {} : { copies }) };
}

/** A root as a node lists it that has yet to hear of changed addresses. */
function underNewNames(root: HeldRoot, nameOf: (username: string) => string): HeldRoot {
  const owner = nameOf(root.owner);
  const grants = root.grants.map(({ path, user }) => ({ path, user: nameOf(user) }));
  // The store knows the person of a name that has changed.
  const subject = owner === root.owner ? root.subject : undefined;
  return { ...root, owner, grants, subject };
}

/** Renews a lease. */
export function* heartbeat(now: Moment, beat: Heartbeat): Plan<HeartbeatOutcome> {
  const node = yield* getLocked<NodeRow & { held_count: bigint; given_up: bigint | null }>(
    `SELECT n.*, 0 AS root_count, (SELECT COUNT(*) FROM roots r WHERE r.fs_id = n.fs_id AND r.held = 1) AS held_count,
       (SELECT u.given_up FROM unlisted_nodes u WHERE u.fs_id = n.fs_id) AS given_up
     FROM nodes n WHERE n.fs_id = ?`,
    beat.fsId,
  );
  if (node === undefined) return { known: false, sendFull: false };
  // Its id may be another node's by now, with a key of its own.
  yield* requireNotRemoved(beat.fsId, beat.speaker);
  maySpeak(node, beat.speaker);
  requireEpoch(node, beat.epoch);
  if (now.isLive(node)) mayBeat(node, beat);
  // A newer epoch than the store's, or roots that it lacks, mean a store restored from an older copy.
  const isNewer = BigInt(beat.epoch) > node.epoch;
  const more = (beat.rootCount ?? 0n) - node.held_count - node.roots_refused;
  // A node that has yet to hear that roots have moved away still counts them.
  const departed = more > 0n ? yield* departedFrom(now, beat.fsId) : { all: 0n, justNow: 0n };
  const isStoreOlder = isNewer || more > departed.all;
  // Once: what a node has that did not list its roots yet is no news, and others have listed theirs since.
  const isNews = isStoreOlder && !isListAwaited(node.given_up);
  if (isNewer && isOfAnother(node, beat)) {
    // From before the store was lost, and perhaps from a gone process: the present one registers.
    if (isNews) yield* awaitOlderRoots(now);
    return { known: true, sendFull: true };
  }
  // First: once the epoch is recorded it tells nothing any more.
  if (isNews) yield* awaitOlderRoots(now);
  const key = beat.speaker.kind === "mock" ? null : beat.speaker.keyFingerprint;
  yield* run(
    `UPDATE nodes SET disk_free = ?, draining = ?, roots_version = ?, holder_key = ?, epoch = ?, last_seen_ms = ?
     WHERE fs_id = ?`,
    beat.diskFreeBytes,
    beat.draining ? 1 : 0,
    String(beat.rootsVersion),
    key,
    beat.epoch,
    now.wallMs,
    beat.fsId,
  );
  now.renew(beat.fsId);
  const areRootsOlder = beat.rootsVersion < BigInt(node.roots_version ?? "0");
  // The next heartbeat compares with this one, whose answer may be lost.
  if (areRootsOlder) yield* askForList(beat.fsId);
  const subjectsVersion = yield* newestSubject();
  // A number of roots does not say which they are: only a list does.
  const isListMissing = node.given_up !== null || more > departed.justNow;
  const outcome = { known: true, sendFull: isStoreOlder || areRootsOlder || isListMissing };
  return subjectsVersion === 0n ? outcome : { ...outcome, subjectsVersion };
}

/** All nodes by id. */
export function* nodes(now: Moment): Plan<NodeRecord[]> {
  const rows = yield* all<NodeRow>(`SELECT ${NODE_COLUMNS} FROM nodes n`);
  // Databases sort text by rules of their own.
  const byId = rows.toSorted((a, b) => (a.fs_id < b.fs_id ? -1 : 1));
  return byId.map((row) => toNodeRecord(row, now.isLive(row)));
}

/** Remembers whether a node's roots lie in the shared engine. */
export function* noteEngine(fsId: string, isOnEngine: boolean): Plan<void> {
  if (isOnEngine) yield* putSetting(ENGINE_PREFIX + fsId, "shared");
  else yield* dropSetting(ENGINE_PREFIX + fsId);
}

/** Gives up a node that does not come back; false for an unknown one. Throws BAD_ARGUMENT for a live one. */
export function* giveUpNode(now: Moment, fsId: string): Plan<boolean> {
  const node = yield* get<Pick<NodeRow, "fs_id" | "last_seen_ms">>(
    "SELECT fs_id, last_seen_ms FROM nodes WHERE fs_id = ?",
    fsId,
  );
  if (node !== undefined && now.isLive(node)) {
    throw new GroveError("BAD_ARGUMENT", `${fsId} is running: nothing has to be given up`);
  }
  return yield* giveUpList(fsId);
}

function* joinCluster(now: Moment, offered: string): Plan<string> {
  const own = yield* setting("cluster_id");
  if (own !== undefined) {
    if (offered !== "" && offered !== own) throw clusterMismatch(own);
    return own;
  }
  if (offered !== "") {
    yield* adopt(now, offered);
    return offered;
  }
  const made = newUlid(now);
  yield* putSetting("cluster_id", made);
  return made;
}

/** Adopts an id into a new store of an older cluster: other nodes have yet to list their roots. */
function* adopt(now: Moment, id: string): Plan<void> {
  yield* putSetting("cluster_id", id);
  yield* awaitRoots(now);
}

/** The store is an older copy: new roots wait until all nodes have listed theirs. */
export function* awaitOlderRoots(now: Moment): Plan<void> {
  yield* awaitRoots(now);
  yield* awaitAllLists();
}

/** How long new roots wait for nodes that the store may not know, in milliseconds; 0 or less for not at all. */
export function* waitForUnknownNodesMs(now: Moment): Plan<number> {
  return now.placementWaitMs(Number((yield* setting("placement_held_since_ms")) ?? 0));
}

function* awaitRoots(now: Moment): Plan<void> {
  yield* putSetting("placement_held_since_ms", String(Math.trunc(now.wallMs)));
  now.holdPlacement();
}

function* putNode(
  now: Moment,
  node: NodeRegistration,
  facts: { readonly epoch: number; readonly rootsRefused: number },
): Plan<void> {
  const key = node.speaker.kind === "mock" ? null : node.speaker.keyFingerprint;
  yield* run(
    `INSERT INTO nodes (fs_id, name, address, software_version, instance_id, data_id, holder_key, first_key, epoch,
       disk_total, disk_free, disk_reserve, draining, roots_version, last_seen_ms, roots_refused)
     VALUES (${Array.from({ length: 12 }, () => "?").join(", ")}, 0, NULL, ?, ?)
     ON CONFLICT (fs_id) DO UPDATE SET name = excluded.name, address = excluded.address,
       software_version = excluded.software_version, instance_id = excluded.instance_id, data_id = excluded.data_id,
       holder_key = excluded.holder_key, first_key = COALESCE(nodes.first_key, excluded.first_key),
       epoch = excluded.epoch, disk_total = excluded.disk_total, disk_free = excluded.disk_free,
       disk_reserve = excluded.disk_reserve, draining = 0, roots_version = NULL,
       last_seen_ms = excluded.last_seen_ms, roots_refused = excluded.roots_refused`,
    node.fsId,
    node.name,
    node.address,
    node.softwareVersion,
    node.instanceId,
    node.dataId,
    key,
    key,
    facts.epoch,
    node.diskTotalBytes,
    node.diskFreeBytes,
    node.diskReserveBytes,
    now.wallMs,
    facts.rootsRefused,
  );
}

/** The node that makes a control call; throws as `requireNode` of the store does. */
export function* requireCaller(caller: NodeOfCall): Plan<NodeRow> {
  yield* requireNotRemoved(caller.fsId, caller.speaker);
  const node = yield* get<NodeRow>("SELECT n.*, 0 AS root_count FROM nodes n WHERE n.fs_id = ?", caller.fsId);
  if (node === undefined) {
    throw new GroveError("STARTING", "this node has not registered with the metadata store");
  }
  maySpeak(node, caller.speaker);
  if (caller.epoch !== undefined) requireEpoch(node, caller.epoch);
  return node;
}

/** A new id of a root or a cluster. */
export function newUlid(now: Moment): string {
  return ulid({ wallMs: () => now.wallMs }, systemRandom);
}

function clusterMismatch(own: string): GroveError {
  return new GroveError("CLUSTER_MISMATCH", "this metadata store belongs to another cluster", {
    metadata: { cluster_id: own },
  });
}
