// Rows of moves of roots in the metadata store, and what other commands ask about them.
import { GroveError } from "#base/errors.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { systemRandom } from "#base/random.ts";
import {
  addSetting,
  dropSetting,
  putSetting,
  putSettings,
  setting,
  settingsOf,
} from "#metaserver/sql/settings.ts";
import { all, batchesOf, get, getLocked, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import { askForList, NOT_LISTED } from "./missing-lists.ts";
import {
  type ArrivalTold,
  type FoundCopy,
  isLost,
  isUnderWay,
  type RootMove,
  type ToldDeparture,
} from "./root-move.ts";

/** Moves that a cluster has at once, those that wait to be confirmed included. */
export const ROOT_MOVES_MAX = 10_000;
/** Bytes of the secret by which both nodes of a move know each other. */
export const MOVE_SECRET_BYTES = 16;
/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const PREFIX = "root_move:";
/** What `LIKE` compares keys of moves with. */
const MOVES = `${PREFIX}%`;

interface Clocked {
  readonly wallMs: number;
}

/** All moves by owner. */
export function* rootMoves(_now?: Clocked): Plan<RootMove[]> {
  const rows = yield* all<{ value: string }>("SELECT value FROM settings WHERE key LIKE ?", MOVES);
  const moves = rows.map(({ value }) => moveOf(value));
  return moves.toSorted((a, b) => (a.owner < b.owner ? -1 : 1));
}

/**
 * Roots that a node may hold and the store has elsewhere already, and those of them that have moved within the time
 * of a lease: until then the node may not have heard of it.
 */
export function* departedFrom(
  now: Clocked,
  fsId: string,
): Plan<{ readonly all: bigint; readonly justNow: bigint }> {
  const moves = (yield* rootMoves()).filter(
    ({ source, state }) => source === fsId && !["copying", "undone", "returned"].includes(state),
  );
  const justNow = moves.filter(({ changedMs }) => Math.abs(now.wallMs - changedMs) < NODE_LEASE_MS);
  return { all: BigInt(moves.length), justNow: BigInt(justNow.length) };
}

/** True while a root is to arrive at a node: a claim there must not make an empty one. */
export function* arrivesAt(owner: string, fsId: string): Plan<boolean> {
  const move = yield* findMove(owner);
  if (move?.state === "returned") return move.source === fsId;
  return move?.target === fsId && (move.state === "switched" || move.state === "confirmed");
}

/** Ends the part of a node that is removed. Throws BAD_ARGUMENT while it keeps copies that nobody confirmed. */
export function* leaveMoves(now: Clocked, fsId: string): Plan<void> {
  for (const move of yield* rootMoves()) {
    const { source, target, state, owner } = move;
    if (source !== fsId && target !== fsId) continue;
    if (source === fsId && state === "switched") {
      throw new GroveError(
        "BAD_ARGUMENT",
        `${fsId} keeps a copy of the root of ${owner}, which has moved to ${target}: look there, and confirm the move first (grove root move ${owner} -confirm, or grove node drain ${fsId} -confirm for all)`,
      );
    }
    const ended = [...new Set([...move.ended, source === fsId ? ("source" as const) : ("target" as const)])];
    const goesBack = isUnderWay(move) && (target === fsId || (yield* isGivenUp(owner)));
    if (ended.length === 2) yield* dropMove(move);
    else yield* changeMove(now, move, goesBack ? { ended, state: "undone" } : { ended });
  }
}

/** True for a root that has gone with its node. */
function* isGivenUp(owner: string): Plan<boolean> {
  return (yield* get("SELECT 1 AS one FROM roots WHERE owner = ?", owner)) === undefined;
}

/** Makes a node the source of moves of roots that it has taken over from the source before. */
export function* followSources(
  fsId: string,
  roots: readonly { readonly owner: string; readonly before: string }[],
): Plan<void> {
  const before = new Map(roots.map(({ owner, before }) => [owner, before]));
  for (const move of yield* rootMoves()) {
    const { source, target } = move;
    // A target that has taken a root over already is not its source; who takes it from that one is.
    const places = isUnderWay(move) ? [source, target] : [source];
    const from = before.get(move.owner);
    if (from !== undefined && places.includes(from) && target !== fsId)
      yield* putMove({ ...move, source: fsId });
  }
}

/** Moves that are not over. */
export function* countMoves(): Plan<number> {
  const row = yield* get<{ count: bigint }>("SELECT COUNT(*) AS count FROM settings WHERE key LIKE ?", MOVES);
  return Number(row?.count ?? 0n);
}

/** Owners whose roots are under a move, read when they are first asked for. */
type MovingOwners = () => Plan<Set<string>>;

/** Reads them once for a command. */
export function movingOwners(): MovingOwners {
  let known: Set<string> | undefined;
  return function* () {
    known ??= new Set((yield* rootMoves()).map(({ owner }) => owner));
    return known;
  };
}

/** Forgets a move. */
export function* dropMove({ owner }: Pick<RootMove, "owner">): Plan<void> {
  yield* dropSetting(PREFIX + owner);
}

/** Changes a move. */
export function* changeMove(now: Clocked, move: RootMove, facts: Partial<RootMove>): Plan<RootMove> {
  const changed = { ...move, ...facts, changedMs: Math.trunc(now.wallMs) };
  yield* putMove(changed);
  return changed;
}

/** The move of a user's root. */
export function* findMove(owner: string): Plan<RootMove | undefined> {
  const row = yield* getLocked<{ value: string }>("SELECT value FROM settings WHERE key = ?", PREFIX + owner);
  return row === undefined ? undefined : moveOf(row.value);
}

/** A move as its setting has it. */
function moveOf(value: string): RootMove {
  return JSON.parse(value) as RootMove;
}

/** Stores a move. */
export function* putMove(move: RootMove): Plan<void> {
  yield* putSetting(PREFIX + move.owner, JSON.stringify(move));
}

/** Stores a move unless its root has begun another meanwhile: then false. */
function* addMove(move: RootMove): Plan<boolean> {
  return yield* addSetting(PREFIX + move.owner, JSON.stringify(move));
}

/** Settings of roots that an older copy of the store has where they were before they moved (D27). */
const DEPARTED_PREFIX = "root_departed:";
const ARRIVED_PREFIX = "root_arrived:";
/** Roots that one statement names: far fewer values than any database's limit. */
const BATCH = 500;

interface HeldTwice {
  readonly owner: string;
  readonly heldRootId: string;
  readonly recordedRootId: string;
  readonly recordedFsId: string;
}

interface ListedRoot extends ArrivalTold {
  readonly rootId: string;
  readonly leaseEpoch?: bigint | undefined;
}

interface Note {
  readonly key: string;
  readonly value: string;
}

/** Where a root went, by the word of the node on which the store has it. */
interface Departure {
  readonly from: string;
  readonly to: string;
  readonly moveId: string;
}

/** Remembers the move that has brought a root where the store has it. */
export function* noteArrival(rootId: string, moveId: string): Plan<void> {
  yield* putSetting(ARRIVED_PREFIX + rootId, moveId);
  yield* dropSetting(DEPARTED_PREFIX + rootId);
}

/** The move that has brought a root where the store has it; empty where the store has heard of none. */
export function* lastArrival(rootId: string): Plan<string> {
  return (yield* setting(ARRIVED_PREFIX + rootId)) ?? "";
}

/**
 * Notes where roots went that the store still has on the node that tells so, or on one before it. Their places
 * change once the target lists them, which it is asked to do. What the store has heard of later moves counts.
 */
export function* noteDepartures(fsId: string, told: readonly ToldDeparture[] = []): Plan<void> {
  for (const batch of batchesOf(told, BATCH)) {
    const ids = batch.map(({ rootId }) => rootId);
    const rows = yield* all<{ root_id: string; fs_id: string }>(
      `SELECT root_id, fs_id FROM roots WHERE root_id IN (${ids.map(() => "?").join(", ")})`,
      ...ids,
    );
    const places = new Map(rows.map((row) => [row.root_id, row.fs_id]));
    const notes = yield* settingsOf(ids.flatMap((id) => [DEPARTED_PREFIX + id, ARRIVED_PREFIX + id]));
    const news = new Map<string, Departure>();
    for (const { rootId, target, moveId } of batch) {
      const place = places.get(rootId);
      if (place === undefined || moveId <= (notes.get(ARRIVED_PREFIX + rootId) ?? "")) continue;
      const noted = news.get(rootId) ?? departureOf(notes.get(DEPARTED_PREFIX + rootId));
      const before = noted?.from === place ? noted : undefined;
      const isNext = place === fsId || before?.to === fsId;
      if (!isNext || place === target || moveId <= (before?.moveId ?? "")) continue;
      news.set(rootId, { from: place, to: target, moveId });
    }
    yield* putSettings(
      Array.from(news, ([rootId, departure]) => [DEPARTED_PREFIX + rootId, JSON.stringify(departure)]),
    );
    for (const target of new Set(Array.from(news.values(), ({ to }) => to))) yield* askForList(target);
  }
}

/** Roots that have departed to a node, by their ids and by the word of the node that had them. */
export function* departuresTo(fsId: string): Plan<ReadonlyMap<string, Departure>> {
  const rows = yield* all<Note>("SELECT key, value FROM settings WHERE key LIKE ?", `${DEPARTED_PREFIX}%`);
  const departures = rows.map(
    ({ key, value }) => [key.slice(DEPARTED_PREFIX.length), JSON.parse(value) as Departure] as const,
  );
  return new Map(departures.filter(([, { to }]) => to === fsId));
}

/** Gives a node those of them that it lists. */
export function* takeDepartures(
  fsId: string,
  departures: ReadonlyMap<string, Departure>,
  roots: readonly { readonly rootId: string }[],
): Plan<void> {
  if (departures.size === 0) return;
  for (const { rootId } of roots) {
    const departure = departures.get(rootId);
    if (departure === undefined) continue;
    // As one that is asked for, until this list has confirmed it: its owner may have another name by now.
    const place = [NOT_LISTED, rootId, departure.from] as const;
    yield* run("UPDATE roots SET fs_id = ?, held = ? WHERE root_id = ? AND fs_id = ?", fsId, ...place);
    yield* noteArrival(rootId, departure.moveId);
  }
}

/** Asks nodes for their lists on which the store has roots that another one lists, once for each such news. */
export function* askHolders(
  fsId: string,
  known: { readonly roots_refused: bigint } | undefined,
  conflicts: readonly HeldTwice[],
): Plan<void> {
  if (BigInt(conflicts.length) <= (known?.roots_refused ?? 0n)) return;
  const same = conflicts.filter(
    ({ heldRootId, recordedRootId, recordedFsId }) => heldRootId === recordedRootId && recordedFsId !== fsId,
  );
  for (const holder of new Set(same.map(({ recordedFsId }) => recordedFsId))) yield* askForList(holder);
}

/**
 * Finds copies in a node's list from before moves that have ended since: its folder is a backup of then. Each is
 * under that move again, which has switched, so that the node keeps it and serves it no more, and an operator
 * confirms its removal. A root that is under another move stays as it is.
 */
export function* findCopies(
  now: Clocked,
  fsId: string,
  list: {
    readonly roots: readonly ListedRoot[];
    readonly conflicts: readonly HeldTwice[];
    readonly moving: MovingOwners;
  },
): Plan<FoundCopy[]> {
  const { roots, conflicts, moving } = list;
  const told = new Map(roots.map((root) => [root.rootId, root]));
  const found: FoundCopy[] = [];
  for (const batch of batchesOf(conflicts, BATCH)) {
    const notes = yield* settingsOf(batch.map(({ heldRootId }) => ARRIVED_PREFIX + heldRootId));
    for (const { owner, heldRootId: rootId, recordedRootId, recordedFsId: target } of batch) {
      const root = told.get(rootId);
      const moveId = notes.get(ARRIVED_PREFIX + rootId);
      // The epochs of the shared engine say themselves who has a root.
      if (root?.arrival === undefined || root.leaseEpoch !== undefined || moveId === undefined) continue;
      if (rootId !== recordedRootId || target === fsId || moveId <= root.arrival) continue;
      const owners = yield* moving();
      if (owners.has(owner) || owners.size >= ROOT_MOVES_MAX) continue;
      owners.add(owner);
      const isNew = yield* addMove(switchedMove(now, { moveId, owner, rootId, source: fsId, target }));
      if (isNew) found.push({ owner, target });
    }
  }
  return found;
}

/** A move that has switched, or that is made of what nodes tell of it. */
export function switchedMove(
  now: Clocked,
  place: Pick<RootMove, "moveId" | "owner" | "rootId" | "source" | "target">,
): RootMove {
  const nowMs = Math.trunc(now.wallMs);
  const counts = { attempt: 0, number: 0, bytes: 0, rows: 0, left: 0 };
  const secret = systemRandom.bytes(MOVE_SECRET_BYTES).toString("hex");
  return {
    ...place,
    ...counts,
    state: "switched",
    secret,
    startedMs: nowMs,
    changedMs: nowMs,
    problem: "",
    ended: [],
  };
}

/** A node whose root was given to another still counts it, until its list has been asked for and refused. */
export function* expectCopyAt(fsId: string): Plan<void> {
  yield* run("UPDATE nodes SET roots_refused = roots_refused + 1 WHERE fs_id = ?", fsId);
  yield* askForList(fsId);
}

/** Lost moves by the ids of their roots. */
export function* lostMoves(): Plan<ReadonlyMap<string, RootMove>> {
  const rows = yield* all<{ value: string }>(
    "SELECT value FROM settings WHERE key LIKE ? AND value LIKE ?",
    MOVES,
    '%"target":""%',
  );
  const moves = rows.map(({ value }) => moveOf(value)).filter(isLost);
  return new Map(moves.map((move) => [move.rootId, move]));
}

/** Notes which of their roots another node lists that came there by these moves, or by later ones. */
export function* noteRivals(
  now: Clocked,
  fsId: string,
  lost: ReadonlyMap<string, RootMove>,
  roots: readonly ListedRoot[],
): Plan<void> {
  if (lost.size === 0) return;
  for (const { rootId, arrival = "" } of roots) {
    const move = lost.get(rootId);
    if (move === undefined || move.source === fsId || arrival < move.moveId) continue;
    if (move.rival === undefined || arrival > move.rival.arrival)
      yield* changeMove(now, move, { rival: { fsId, arrival } });
  }
}

function departureOf(text: string | undefined): Departure | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as Departure);
}
