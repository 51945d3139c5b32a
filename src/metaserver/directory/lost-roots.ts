// Roots that a restore has lost: only an operator replaces them by empty ones (D19), and lists find frozen ones (D27).
import { GroveError } from "#base/errors.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { idBehind } from "#base/ulid.ts";
import { dropSetting, putSetting, setting } from "#metaserver/sql/settings.ts";
import { get, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import type { GivenUpRoot } from "./directory.ts";
import { askForList, missingLists, NOT_LISTED, requireAskedLists } from "./missing-lists.ts";
import type { NodeCaller } from "./node-caller.ts";
import { type Moment, newUlid, waitForUnknownNodesMs } from "./node-commands.ts";
import { ENGINE_PREFIX } from "./node-row.ts";
import { isLost, type RootMove } from "./root-move.ts";
import { changeMove, lastArrival, noteArrival, switchedMove } from "./root-move-rows.ts";

/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const PREFIX = "root_given_up:";

interface HeldRow {
  readonly fs_id: string;
  readonly held: bigint;
  readonly assigned_ms: bigint;
}

/** True when a restored node may ask for a root that it has lost. */
export function mayBeLost(caller: NodeCaller): boolean {
  return caller.restoredAtMs !== undefined;
}

/**
 * For the node on which a root lives: the id of the new, empty root when an operator gave the old one up
 * after its loss; else undefined. Throws ROOT_LOST for a root from before the node's restore that the node
 * lacks, and for one that no node lists since the store's; STARTING while a node's list is missing.
 */
export function* replaceLostRoot(now: Moment, owner: string, caller: NodeCaller): Plan<string | undefined> {
  const row = yield* heldRow(owner);
  const lost = row === undefined ? undefined : yield* lossOf(row, caller);
  if (lost === undefined) return undefined;
  const givenUpAtMs = Number(yield* setting(PREFIX + owner));
  // A root given up before this loss was another one.
  if (!(givenUpAtMs >= lost.atMs)) {
    throw new GroveError(
      "ROOT_LOST",
      `the root of ${owner} was on ${caller.fsId} before ${lost.by}; an operator must give it up before there is an empty one ` +
        "(grove node lost-root)",
    );
  }
  const rootId = newUlid(now);
  yield* run("DELETE FROM grants WHERE owner = ?", owner);
  yield* run(
    "UPDATE roots SET root_id = ?, held = 1, version = 0, assigned_ms = ? WHERE owner = ?",
    rootId,
    now.wallMs,
    owner,
  );
  yield* dropSetting(PREFIX + owner);
  return rootId;
}

interface Loss {
  readonly atMs: number;
  readonly by: string;
}

/** What has lost a root which the node asks for; undefined where it may make it. */
function* lossOf(row: HeldRow, { needsNumber, restoredAtMs }: NodeCaller): Plan<Loss | undefined> {
  if (row.held === NOT_LISTED && (needsNumber === true || restoredAtMs !== undefined)) {
    yield* requireAskedLists();
    const by = "the metadata store was restored from an older copy, and no node lists it since";
    return { atMs: Number(row.assigned_ms), by };
  }
  if (restoredAtMs === undefined || row.held === 0n) return undefined;
  if (row.assigned_ms > BigInt(Math.trunc(restoredAtMs))) return undefined;
  return { atMs: restoredAtMs, by: "that was restored from a backup, which lacks it" };
}

/** Gives up a user's root that a restore has lost. Nothing changes for a root that its node has. */
export function* giveUpRoot(now: Pick<Moment, "wallMs">, owner: string): Plan<GivenUpRoot | undefined> {
  const row = yield* heldRow(owner);
  if (row === undefined || row.held === 0n) return undefined;
  yield* putSetting(PREFIX + owner, String(Math.trunc(now.wallMs)));
  return { fsId: row.fs_id };
}

function* heldRow(owner: string): Plan<HeldRow | undefined> {
  return yield* get<HeldRow>("SELECT fs_id, held, assigned_ms FROM roots WHERE owner = ?", owner);
}

// Roots that are frozen for moves which the store, an older copy, has lost: lists say where each of them is.

/** Why a root waits whose last list has come. */
const UNKNOWN_NODES = `nodes that the store does not know have ${NODE_LEASE_MS / 1_000} s to register`;
/** Nodes that the reason of a wait names. */
const NAMED_MAX = 3;

/**
 * The move as its source has it, in the state in which an attempt to switch may have succeeded. The caller has all
 * lists asked for. Undefined for a root that the store lacks: the source's own list comes first.
 */
export function* lostMove(
  now: Moment,
  { moveId, owner, source }: Pick<RootMove, "moveId" | "owner" | "source">,
): Plan<RootMove | undefined> {
  const root = yield* get<{ root_id: string }>("SELECT root_id FROM roots WHERE owner = ?", owner);
  if (root === undefined) return undefined;
  const move = switchedMove(now, { moveId, owner, rootId: root.root_id, source, target: "" });
  // No other node hears of it before its root is found there.
  return { ...move, state: "frozen", ended: ["target"] };
}

/**
 * A lost move that was decided for its source, as its target hears of it: what has come there is a copy of before.
 * Undefined where the store knows no later move of the root.
 */
export function* endedMove(
  now: Moment,
  { moveId, owner }: Pick<RootMove, "moveId" | "owner">,
): Plan<RootMove | undefined> {
  const root = yield* get<{ root_id: string; fs_id: string }>(
    "SELECT root_id, fs_id FROM roots WHERE owner = ?",
    owner,
  );
  if (root === undefined || (yield* lastArrival(root.root_id)) <= moveId) return undefined;
  const move = switchedMove(now, { moveId, owner, rootId: root.root_id, source: root.fs_id, target: "" });
  return { ...move, state: "undone" };
}

/**
 * Decides a lost move once all lists have come. Where no node lists the root with a later arrival, it is undone: the
 * source serves the root as before, and what the target may have is a copy of before. Else it has switched. Until
 * then its problem says what it waits for.
 */
export function* settleLost(now: Moment, move: RootMove): Plan<RootMove> {
  const { moveId, rootId, source, rival } = move;
  const lists = yield* missingLists();
  if (lists.awaited.length > 0) return yield* wait(now, move, listsWanted(lists.awaited));
  if ((yield* waitForUnknownNodesMs(now)) > 0) return yield* wait(now, move, UNKNOWN_NODES);
  const root = yield* get<{ fs_id: string; held: bigint }>(
    "SELECT fs_id, held FROM roots WHERE root_id = ?",
    rootId,
  );
  if (root?.held !== 1n) {
    yield* askForList(source);
    return yield* wait(now, move, `no node has listed this root since; ${source} is asked again`);
  }
  if (lists.givenUp.includes(root.fs_id)) return yield* wait(now, move, placedOnLost(root.fs_id));
  if (root.fs_id === source && rival === undefined) {
    yield* noteArrival(rootId, idBehind(moveId));
    return yield* changeMove(now, move, { state: "undone", problem: "" });
  }
  const target = rival?.fsId ?? root.fs_id;
  const isProven = rival !== undefined || (yield* setting(ENGINE_PREFIX + target)) !== undefined;
  if (!isProven || (root.fs_id !== source && root.fs_id !== target))
    return yield* wait(now, move, twoCopies(root.fs_id, move));
  if (root.fs_id === source) yield* placeAt(target, move);
  if (rival !== undefined) yield* noteArrival(rootId, rival.arrival);
  return yield* changeMove(now, move, {
    state: "switched",
    target,
    ended: [],
    problem: "",
    rival: undefined,
  });
}

/** Places the root where it has moved. That node tells its shares with the list that it is asked for. */
function* placeAt(target: string, { owner, rootId, source }: RootMove): Plan<void> {
  const place = [target, owner, rootId, source] as const;
  yield* run(
    "UPDATE roots SET fs_id = ?, version = 0 WHERE owner = ? AND root_id = ? AND fs_id = ?",
    ...place,
  );
  yield* run("DELETE FROM grants WHERE owner = ?", owner);
  yield* askForList(target);
}

function* wait(now: Moment, move: RootMove, problem: string): Plan<RootMove> {
  return move.problem === problem ? move : yield* changeMove(now, move, { problem });
}

function listsWanted(fsIds: readonly string[]): string {
  const named = fsIds.slice(0, NAMED_MAX).join(", ");
  const more = fsIds.length > NAMED_MAX ? ` and ${fsIds.length - NAMED_MAX} more` : "";
  return `${named}${more} must list their roots first: start them, or say of one that does not come back: grove node lost ID`;
}

function placedOnLost(fsId: string): string {
  return `the store has this root on ${fsId}, which was given up: start that node, or remove it: grove node remove ${fsId}`;
}

function twoCopies(fsId: string, { source }: RootMove): string {
  return `${fsId} lists this root too, and no move tells which copy is newer: look at both, and if the one on ${source} is to stay, stop ${fsId} and take it out: grove node remove ${fsId}`;
}

/** Throws BAD_ARGUMENT with what a lost move waits for, or nothing once it is decided. */
export function requireSettled(move: RootMove): RootMove {
  if (!isLost(move)) return move;
  throw new GroveError(
    "BAD_ARGUMENT",
    `the metadata store has lost this move with the root of ${move.owner}: ${move.problem}`,
  );
}
