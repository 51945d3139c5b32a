// The commands of the metadata store about roots and grants, as plans of one transaction each (D19).
import { GroveError } from "#base/errors.ts";
import { GRANTS_PER_ROOT, ROOTS_LISTED_MAX, SHARED_ROOTS_LISTED_MAX } from "#base/limits.ts";
import { all, get, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import { namesUpTo, requireNobodys } from "./address-changes.ts";
import type { GrantChange, LocatedRoot, RootPlace, SharedRoot, SharePlace } from "./directory.ts";
import { drainedNodes } from "./drained-nodes.ts";
import { mayBeLost, replaceLostRoot } from "./lost-roots.ts";
import { requireAllLists } from "./missing-lists.ts";
import type { NodeCaller } from "./node-caller.ts";
import { type Moment, newUlid, nodes, requireCaller, waitForUnknownNodesMs } from "./node-commands.ts";
import { chooseNode } from "./placement.ts";
import { nobodyTakesRoots, placementPauses } from "./placement-pauses.ts";
import { arrivesAt, findMove } from "./root-move-rows.ts";
import { takeRootNumber } from "./root-numbers.ts";

/**
 * Ended grants of a root that stay as rows, so that no late message of an older version brings one back. A node sends
 * a root's changes one after the other; a call that it has given up after its 10 s ends within 5 s more. Fewer than
 * these come to the store in that time, at one in a millisecond.
 */
export const ENDED_GRANTS_KEPT = 10_000;
/** As many more are there before the older ones are forgotten at once. */
const ENDED_GRANTS_MORE = 1_000;

const ROOT_COLUMNS = "r.owner, r.root_id, r.fs_id, r.held, n.address, n.last_seen_ms";

interface RootRow {
  readonly owner: string;
  readonly root_id: string;
  readonly fs_id: string;
  readonly held: bigint;
  readonly address: string | null;
  readonly last_seen_ms: bigint | null;
}

/** Where the user's root lives; places one that has no place. */
export function* locateRoot(now: Moment, owner: string): Plan<LocatedRoot> {
  return (yield* findRoot(now, owner)) ?? (yield* place(now, owner));
}

/** The same for a node that asks, which then holds the root when it is its own. */
export function* claimRoot(now: Moment, owner: string, caller: NodeCaller): Plan<LocatedRoot> {
  yield* requireCaller(caller);
  const { isUnmade, ...located } = yield* locateRoot(now, owner);
  if (located.fsId !== caller.fsId) return isUnmade === undefined ? located : { ...located, isUnmade };
  // An older copy of the store places roots where they were: one that this node lacks may be on another.
  if (caller.needsNumber === true) yield* requireAllLists();
  if (caller.needsNumber === true && (yield* arrivesAt(owner, caller.fsId))) {
    const move = yield* findMove(owner);
    if (move !== undefined && move.problem !== "") {
      throw new GroveError(
        "ROOT_LOST",
        `the root of ${owner} has moved to ${caller.fsId}, which does not have it; ${move.source} keeps a copy: grove root move ${owner} -take_back`,
      );
    }
    throw new GroveError("STARTING", "this root is arriving from another server; try again", {
      metadata: { retry_after_ms: "1000" },
    });
  }
  const number = caller.needsNumber === true ? { number: yield* takeRootNumber() } : {};
  const rootId = yield* replaceLostRoot(now, owner, caller);
  if (rootId !== undefined) return { ...located, ...number, rootId, replacesLost: true };
  yield* run("UPDATE roots SET held = 1 WHERE owner = ? AND held = 0", owner);
  return { ...located, ...number };
}

/** The answer to a claim that changes nothing; undefined when it would change something. */
export function* claimedRoot(now: Moment, owner: string, caller: NodeCaller): Plan<LocatedRoot | undefined> {
  yield* requireCaller(caller);
  const row = yield* rootRow(owner);
  if (row === undefined) return undefined;
  const changes = row.held === 0n || mayBeLost(caller) || caller.needsNumber === true;
  if (row.fs_id === caller.fsId && changes) return undefined;
  return toLocated(now, row);
}

/** Where a root lives, without placing it. */
export function* findRoot(now: Moment, owner: string): Plan<LocatedRoot | undefined> {
  const row = yield* rootRow(owner);
  return row === undefined ? undefined : toLocated(now, row);
}

/** The same by the root's id. */
export function* findRootById(now: Moment, rootId: string): Plan<LocatedRoot | undefined> {
  const row = yield* get<RootRow>(
    `SELECT ${ROOT_COLUMNS} FROM roots r LEFT JOIN nodes n ON n.fs_id = r.fs_id WHERE r.root_id = ?`,
    rootId,
  );
  return row === undefined ? undefined : toLocated(now, row);
}

/** Places of all roots, one page. */
export function* listRoots(_now: Moment, afterOwner?: string): Plan<RootPlace[]> {
  const rows = yield* all<Pick<RootRow, "owner" | "fs_id">>(
    "SELECT owner, fs_id FROM roots WHERE owner > ? ORDER BY owner LIMIT ?",
    afterOwner ?? "",
    ROOTS_LISTED_MAX,
  );
  return rows.map(({ owner, fs_id: fsId }) => ({ owner, fsId }));
}

/** Roots shared with a user, one page. */
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

/** Records a grant or its end, and returns whether that was new. */
export function* setGrant(now: Moment, asked: GrantChange): Plan<boolean> {
  const node = yield* requireCaller(asked.node);
  const nameOf = yield* namesUpTo(asked.namesVersion);
  const change = { ...asked, owner: nameOf(asked.owner), user: nameOf(asked.user) };
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
  // A registration carries the whole state of its version, without grants that had ended by then.
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
  if (changes > 0 && !change.granted) yield* forgetOldEnds(change.owner);
  return changes > 0;
}

/** Forgets the ended grants of a root beyond the newest ones. A registration forgets all of them. */
function* forgetOldEnds(owner: string): Plan<void> {
  const ended = yield* get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM grants WHERE owner = ? AND granted = 0",
    owner,
  );
  if ((ended?.count ?? 0n) <= ENDED_GRANTS_KEPT + ENDED_GRANTS_MORE) return;
  yield* run(
    `DELETE FROM grants WHERE owner = ? AND granted = 0 AND version <= (SELECT version FROM grants
       WHERE owner = ? AND granted = 0 ORDER BY version DESC LIMIT 1 OFFSET ?)`,
    owner,
    owner,
    ENDED_GRANTS_KEPT,
  );
}

function* place(now: Moment, owner: string): Plan<LocatedRoot> {
  const waitMs = yield* waitForUnknownNodesMs(now);
  if (waitMs > 0) {
    throw new GroveError(
      "STARTING",
      "the metadata store is new and waits for the FileServers to list their roots",
      { metadata: { retry_after_ms: String(Math.ceil(waitMs)) } },
    );
  }
  yield* requireAllLists();
  yield* requireNobodys(owner);
  const pauses = yield* placementPauses(now);
  const drained = yield* drainedNodes();
  const known = (yield* nodes(now)).filter(({ fsId }) => !drained.includes(fsId));
  const node = chooseNode(known.filter(({ fsId }) => !pauses.has(fsId)));
  if (node === undefined) throw nobodyTakesRoots(known, pauses);
  const rootId = newUlid(now);
  yield* run(
    "INSERT INTO roots (owner, root_id, fs_id, held, version, assigned_ms) VALUES (?, ?, ?, 0, 0, ?)",
    owner,
    rootId,
    node.fsId,
    now.wallMs,
  );
  return { owner, rootId, fsId: node.fsId, address: node.address, live: true, isUnmade: true };
}

/** The deepest shared path that covers a place; the place itself when one lies below it; else undefined. */
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
  const located = { owner, rootId, fsId, address: row.address ?? "", live };
  return row.held === 0n ? { ...located, isUnmade: true } : located;
}
