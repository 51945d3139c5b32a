// The commands of the metadata store, as plans that every database runs; each is one transaction (D19).
import { GroveError } from "#base/errors.ts";
import { GRANTS_PER_ROOT, NODES_MAX, ROOTS_LISTED_MAX, SHARED_ROOTS_LISTED_MAX } from "#base/limits.ts";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type {
  GrantChange,
  Heartbeat,
  HeartbeatOutcome,
  Lease,
  LocatedRoot,
  NodeCaller,
  NodeRecord,
  NodeRegistration,
  RootPlace,
  SharedRoot,
  SharePlace,
  Subject,
} from "./directory.ts";
import {
  epochInTheWay,
  isOfAnother,
  mayBeat,
  mayHold,
  maySpeak,
  type NodeRow,
  nextEpoch,
  requireEpoch,
  toNodeRecord,
} from "./node-row.ts";
import { chooseNode } from "./placement.ts";
import { registerRoots } from "./root-takeover.ts";
import { all, get, getLocked, type Plan, run } from "./sql-plan.ts";

/** Time as the store counts it at the moment of a command: by one clock for all who use the store. */
export interface Moment {
  readonly wallMs: number;
  /** True while the node's lease runs. */
  isLive(node: Pick<NodeRow, "fs_id" | "last_seen_ms">): boolean;
  /** A heartbeat or registration came just now; its row says so too. */
  renew(fsId: string): void;
  /** How long new roots still have to wait for the FileServers to list theirs; the setting says since when they do. */
  placementWaitMs(heldSinceWallMs: number): number;
  /** They begin to wait now; the setting says so too. */
  holdPlacement(): void;
}

const NODE_COLUMNS = `n.*, (SELECT COUNT(*) FROM roots r WHERE r.fs_id = n.fs_id) AS root_count`;
const ROOT_COLUMNS = "r.owner, r.root_id, r.fs_id, r.held, n.address, n.last_seen_ms";

interface RootRow {
  readonly owner: string;
  readonly root_id: string;
  readonly fs_id: string;
  readonly held: bigint;
  readonly address: string | null;
  readonly last_seen_ms: bigint | null;
}

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

/** Registers a node and begins its next epoch. */
export function* register(now: Moment, registration: NodeRegistration): Plan<Lease> {
  const id = yield* joinCluster(now, registration.clusterId);
  const known = yield* getLocked<NodeRow>(
    "SELECT n.*, 0 AS root_count FROM nodes n WHERE n.fs_id = ?",
    registration.fsId,
  );
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
  const epoch = nextEpoch(known, registration);
  const conflicts = yield* registerRoots(registration, now.wallMs);
  yield* putNode(now, registration, { epoch, rootsRefused: conflicts.length });
  now.renew(registration.fsId);
  return { clusterId: id, epoch, conflicts };
}

/** Renews a lease. */
export function* heartbeat(now: Moment, beat: Heartbeat): Plan<HeartbeatOutcome> {
  const node = yield* getLocked<NodeRow & { held_count: bigint; roots_refused: bigint }>(
    `SELECT n.*, 0 AS root_count, (SELECT COUNT(*) FROM roots r WHERE r.fs_id = n.fs_id AND r.held = 1) AS held_count
     FROM nodes n WHERE n.fs_id = ?`,
    beat.fsId,
  );
  if (node === undefined) return { known: false, sendFull: false };
  maySpeak(node, beat.speaker);
  requireEpoch(node, beat.epoch);
  if (now.isLive(node)) mayBeat(node, beat);
  // A newer epoch than the store's, or roots that it lacks, mean that the store was restored from an older copy.
  const isNewer = BigInt(beat.epoch) > node.epoch;
  const isStoreOlder = isNewer || (beat.rootCount ?? 0n) > node.held_count + node.roots_refused;
  if (isNewer && isOfAnother(node, beat)) {
    // Of before the store was lost, and of a process that may be gone: who is there registers.
    yield* awaitRoots(now);
    return { known: true, sendFull: true };
  }
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
  if (isStoreOlder) yield* awaitRoots(now);
  const areRootsOlder = beat.rootsVersion < BigInt(node.roots_version ?? "0");
  return { known: true, sendFull: isStoreOlder || areRootsOlder };
}

/** Where the user's root lives, placing it when it has no place. */
export function* locateRoot(now: Moment, owner: string): Plan<LocatedRoot> {
  return (yield* findRoot(now, owner)) ?? (yield* place(now, owner));
}

/** The same for a node that asks, which then holds the root when it is its own. */
export function* claimRoot(now: Moment, owner: string, caller: NodeCaller): Plan<LocatedRoot> {
  yield* requireCaller(caller);
  const located = yield* locateRoot(now, owner);
  if (located.fsId === caller.fsId) {
    yield* run("UPDATE roots SET held = 1 WHERE owner = ? AND held = 0", owner);
  }
  return located;
}

/** What a claim answers when it changes nothing; undefined when it would. */
export function* claimedRoot(now: Moment, owner: string, caller: NodeCaller): Plan<LocatedRoot | undefined> {
  yield* requireCaller(caller);
  const row = yield* rootRow(owner);
  if (row === undefined || (row.fs_id === caller.fsId && row.held === 0n)) return undefined;
  return toLocated(now, row);
}

/** Where a root lives, without placing it. */
export function* findRoot(now: Moment, owner: string): Plan<LocatedRoot | undefined> {
  const row = yield* rootRow(owner);
  return row === undefined ? undefined : toLocated(now, row);
}

/** Where all roots live, one page. */
export function* listRoots(_now: Moment, afterOwner?: string): Plan<RootPlace[]> {
  const rows = yield* all<Pick<RootRow, "owner" | "fs_id">>(
    "SELECT owner, fs_id FROM roots WHERE owner > ? ORDER BY owner LIMIT ?",
    afterOwner ?? "",
    ROOTS_LISTED_MAX,
  );
  return rows.map(({ owner, fs_id: fsId }) => ({ owner, fsId }));
}

/** What others share with a user, one page. */
export function* rootsSharedWith(now: Moment, user: string, after?: SharePlace): Plan<SharedRoot[]> {
  const rows = yield* all<RootRow & { path: string }>(
    `SELECT ${ROOT_COLUMNS}, g.path FROM grants g JOIN roots r ON r.owner = g.owner
     LEFT JOIN nodes n ON n.fs_id = r.fs_id WHERE g."user" = ? AND g.granted = 1
       AND (g.owner, g.path) > (?, ?) ORDER BY g.owner, g.path LIMIT ?`,
    user,
    after?.owner ?? "",
    after?.path ?? "",
    SHARED_ROOTS_LISTED_MAX,
  );
  return rows.map((row) => ({ ...toLocated(now, row), path: row.path }));
}

/** The deepest path on the way to a place that is shared with a user. */
export function* sharedRoot(now: Moment, user: string, place: SharePlace): Plan<SharedRoot | undefined> {
  const { owner, path } = place;
  const shared = yield* all<{ path: string }>(
    'SELECT path FROM grants WHERE "user" = ? AND owner = ? AND granted = 1 LIMIT ?',
    user,
    owner,
    GRANTS_PER_ROOT,
  );
  const way = wayTo(
    path,
    shared.map((row) => row.path),
  );
  if (way === undefined) return undefined;
  const row = yield* rootRow(owner);
  return row === undefined ? undefined : { ...toLocated(now, row), path: way };
}

/** Records a grant or its end, and tells whether that was news. */
export function* setGrant(now: Moment, change: GrantChange): Plan<boolean> {
  const node = yield* requireCaller(change.node);
  if (!now.isLive(node)) {
    throw new GroveError("STARTING", "this node's lease has run out; it must send a heartbeat first");
  }
  const root = yield* get<{ fs_id: string; version: bigint }>(
    "SELECT fs_id, version FROM roots WHERE owner = ?",
    change.owner,
  );
  if (root?.fs_id !== change.node.fsId) {
    throw new GroveError("WRONG_NODE", "this root does not live on the calling node");
  }
  // A registration has told the whole state of its version, which leaves no trace of what had ended by then.
  if (change.version < root.version) return false;
  const changes = yield* run(
    `INSERT INTO grants (owner, "user", path, version, granted) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (owner, "user", path) DO UPDATE SET version = excluded.version, granted = excluded.granted
     WHERE excluded.version > grants.version`,
    change.owner,
    change.user,
    change.path,
    change.version,
    change.granted ? 1 : 0,
  );
  return changes > 0;
}

/** True when the address belongs to this person; undefined when it is not known whose it is. */
export function* knownSubject(_now: Moment, username: string, person: Subject): Plan<boolean | undefined> {
  const row = yield* get<Subject>("SELECT issuer, subject FROM subjects WHERE username = ?", username);
  return row === undefined ? undefined : row.issuer === person.issuer && row.subject === person.subject;
}

/** True when the address belongs to this person, which is remembered when it is not known whose it is. */
export function* admitSubject(now: Moment, username: string, person: Subject): Plan<boolean> {
  const known = yield* knownSubject(now, username, person);
  if (known !== undefined) return known;
  yield* run(
    "INSERT INTO subjects (username, issuer, subject) VALUES (?, ?, ?)",
    username,
    person.issuer,
    person.subject,
  );
  return true;
}

/** All nodes by id. */
export function* nodes(now: Moment): Plan<NodeRecord[]> {
  const rows = yield* all<NodeRow>(`SELECT ${NODE_COLUMNS} FROM nodes n`);
  // Databases sort text by rules of their own.
  const byId = rows.toSorted((a, b) => (a.fs_id < b.fs_id ? -1 : 1));
  return byId.map((row) => toNodeRecord(row, now.isLive(row)));
}

/** A setting's value. */
export function* setting(key: string): Plan<string | undefined> {
  return (yield* get<{ value: string }>("SELECT value FROM settings WHERE key = ?", key))?.value;
}

function* putSetting(key: string, value: string): Plan<void> {
  yield* run(
    "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    key,
    value,
  );
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

/** The store is new and the cluster is not: other nodes still have to say which roots they hold. */
function* adopt(now: Moment, id: string): Plan<void> {
  yield* putSetting("cluster_id", id);
  yield* awaitRoots(now);
}

function* awaitRoots(now: Moment): Plan<void> {
  yield* putSetting("placement_held_since_ms", String(Math.trunc(now.wallMs)));
  now.holdPlacement();
}

function* place(now: Moment, owner: string): Plan<LocatedRoot> {
  const heldSince = yield* setting("placement_held_since_ms");
  const waitMs = now.placementWaitMs(Number(heldSince ?? 0));
  if (waitMs > 0) {
    throw new GroveError(
      "STARTING",
      "the metadata store is new and waits for the FileServers to list their roots",
      { metadata: { retry_after_ms: String(Math.ceil(waitMs)) } },
    );
  }
  const node = chooseNode(yield* nodes(now));
  if (node === undefined) {
    throw new GroveError("NODE_DRAINING", "no FileServer that takes new roots is running");
  }
  const rootId = newUlid(now);
  yield* run(
    "INSERT INTO roots (owner, root_id, fs_id, held, version, assigned_ms) VALUES (?, ?, ?, 0, 0, ?)",
    owner,
    rootId,
    node.fsId,
    now.wallMs,
  );
  return { owner, rootId, fsId: node.fsId, address: node.address, live: true };
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

function* requireCaller(caller: NodeCaller): Plan<NodeRow> {
  const node = yield* get<NodeRow>("SELECT n.*, 0 AS root_count FROM nodes n WHERE n.fs_id = ?", caller.fsId);
  if (node === undefined) {
    throw new GroveError("STARTING", "this node has not registered with the metadata store");
  }
  maySpeak(node, caller.speaker);
  requireEpoch(node, caller.epoch);
  return node;
}

/** The deepest of the shared paths that covers a place; the place itself when one lies below it; else nothing. */
function wayTo(place: string, shared: readonly string[]): string | undefined {
  const isBelow = (path: string, above: string): boolean =>
    path === above || above === "/" || path.startsWith(`${above}/`);
  const covering = shared.filter((path) => isBelow(place, path));
  if (covering.length > 0) return covering.reduce((a, b) => (b.length > a.length ? b : a));
  return shared.some((path) => isBelow(path, place)) ? place : undefined;
}

function* rootRow(owner: string): Plan<RootRow | undefined> {
  return yield* get<RootRow>(
    `SELECT ${ROOT_COLUMNS} FROM roots r LEFT JOIN nodes n ON n.fs_id = r.fs_id WHERE r.owner = ?`,
    owner,
  );
}

function toLocated(now: Moment, row: RootRow): LocatedRoot {
  const { owner, root_id: rootId, fs_id: fsId, last_seen_ms } = row;
  const live = last_seen_ms !== null && now.isLive({ fs_id: fsId, last_seen_ms });
  return { owner, rootId, fsId, address: row.address ?? "", live };
}

function newUlid(now: Moment): string {
  return ulid({ wallMs: () => now.wallMs }, systemRandom);
}

function clusterMismatch(own: string): GroveError {
  return new GroveError("CLUSTER_MISMATCH", "this metadata store belongs to another cluster", {
    metadata: { cluster_id: own },
  });
}
