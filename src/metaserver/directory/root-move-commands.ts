// The commands of the metadata store about moves of roots, as plans of one transaction each.
import { GroveError } from "#base/errors.ts";
import { systemRandom } from "#base/random.ts";
import { idBehind } from "#base/ulid.ts";
import { all, get, getLocked, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import { changesUnderWay } from "./address-changes.ts";
import type { NodeRecord } from "./directory.ts";
import { drainedNodes } from "./drained-nodes.ts";
import { endedMove, lostMove, requireSettled, settleLost } from "./lost-roots.ts";
import { askForList, NOT_LISTED } from "./missing-lists.ts";
import type { NodeCaller } from "./node-caller.ts";
import { awaitOlderRoots, type Moment, newUlid, nodes, requireCaller } from "./node-commands.ts";
import {
  isLost,
  isUnderWay,
  type MoveDecision,
  type MoveOrder,
  type MoveStep,
  type NodeMove,
  type RootMove,
  type RootMoveState,
} from "./root-move.ts";
import {
  changeMove as change,
  countMoves,
  dropMove,
  expectCopyAt,
  findMove,
  MOVE_SECRET_BYTES,
  noteArrival,
  putMove,
  ROOT_MOVES_MAX,
  rootMoves,
} from "./root-move-rows.ts";
import { takeRootNumber } from "./root-numbers.ts";
import { endLeases } from "./root-takeover.ts";

interface RootRow {
  readonly root_id: string;
  readonly fs_id: string;
  readonly held: bigint;
}

/** Throws while one of both nodes would send or take rows under names that have changed. */
function* requireNamesHeard(nodeIds: readonly string[]): Plan<void> {
  for (const { former, username, waitsFor } of yield* changesUnderWay()) {
    const behind = waitsFor.filter((fsId) => nodeIds.includes(fsId));
    if (behind.length > 0)
      throw bad(
        `${behind.join(", ")} has yet to hear that ${former} is ${username} now; try again in a minute`,
      );
  }
}

/** Begins the move of a root. */
export function* beginMove(now: Moment, { owner, target }: MoveOrder): Plan<RootMove> {
  const begun = yield* findMove(owner);
  if (begun !== undefined) {
    requireSettled(begun);
    if (begun.target === target && !isGivenBack(begun)) return begun;
    throw bad(`the root of ${owner} is under a move to ${begun.target} already (${begun.state})`);
  }
  const root = yield* getLocked<RootRow>("SELECT root_id, fs_id, held FROM roots WHERE owner = ?", owner);
  if (root === undefined) throw bad(`${owner} has no root`);
  if (root.held === 0n) throw bad(`the root of ${owner} is not made yet: it has nothing to move`);
  if (root.held === NOT_LISTED)
    throw bad(`${root.fs_id} has not listed the root of ${owner} since the metadata store was restored`);
  if (root.fs_id === target) throw bad(`the root of ${owner} is on ${target} already`);
  yield* requireNamesHeard([root.fs_id, target]);
  const known = yield* nodes(now);
  const to = known.find(({ fsId }) => fsId === target);
  if (to === undefined) throw bad(`no FileServer has registered as ${target}`);
  if (!to.live || to.draining) throw bad(`${target} does not run`);
  if ((yield* drainedNodes()).includes(target)) throw bad(`${target} is drained and takes no roots`);
  yield* requireRoomForMove();
  const move: RootMove = {
    moveId: newUlid(now),
    owner,
    rootId: root.root_id,
    source: root.fs_id,
    target,
    state: "copying",
    attempt: 0,
    number: yield* takeRootNumber(),
    secret: systemRandom.bytes(MOVE_SECRET_BYTES).toString("hex"),
    startedMs: Math.trunc(now.wallMs),
    changedMs: Math.trunc(now.wallMs),
    bytes: 0,
    rows: 0,
    left: 0,
    problem: "",
    ended: [],
  };
  yield* putMove(move);
  return move;
}

/** Confirms or undoes. */
export function* decideMove(now: Moment, owner: string, decision: MoveDecision): Plan<RootMove | undefined> {
  const move = yield* findMove(owner);
  if (move === undefined) return undefined;
  if (isLost(move)) return requireSettled(yield* settleLost(now, move));
  if (decision === "take_back") return yield* takeBack(now, move);
  const [wanted, from]: [RootMoveState, readonly RootMoveState[]] =
    decision === "confirm" ? ["confirmed", ["switched"]] : ["undone", ["copying", "frozen"]];
  if (move.state === wanted) return move;
  if (!from.includes(move.state)) {
    throw bad(
      decision === "confirm"
        ? `the root of ${owner} has not moved yet (${move.state})`
        : `the root of ${owner} lives on ${move.target} by now, with what has changed since: confirm the move, then move it back`,
    );
  }
  if (decision === "confirm") yield* requireServed(now, move);
  return yield* change(now, move, { state: wanted, problem: "" });
}

/**
 * Notes whether the target has a root that has moved there. Any node of the shared engine may serve one that has moved
 * to that. The time of the switch stays: the source's copy is of then.
 */
function* noteWhetherThere(
  move: RootMove,
  problem: string,
  known: () => Plan<readonly NodeRecord[]>,
): Plan<RootMove> {
  const { target } = move;
  if (problem === move.problem) return move;
  if ((yield* known()).some(({ fsId, onEngine }) => fsId === target && onEngine === true)) return move;
  const noted = { ...move, problem };
  yield* putMove(noted);
  return noted;
}

/** True for a move whose root is with its source again. */
function isGivenBack({ state }: RootMove): boolean {
  return state === "undone" || state === "returned";
}

/** The source's copy may be all that is left of a root whose node does not run. */
function* requireServed(now: Moment, { owner, source, target, problem }: RootMove): Plan<void> {
  if (problem !== "") {
    throw bad(
      `${target} does not have the root of ${owner}, and the copy on ${source} may be the last one: ` +
        `-take_back has ${source} serve it again`,
    );
  }
  const root = yield* get<{ fs_id: string }>("SELECT fs_id FROM roots WHERE owner = ?", owner);
  const known = yield* nodes(now);
  if (root === undefined || known.some(({ fsId, live }) => fsId === root.fs_id && live)) return;
  const isKept = !known.some(({ fsId, onEngine }) => fsId === source && onEngine === true);
  throw bad(
    `${root.fs_id} does not run, and has the root of ${owner}: look at the root there first` +
      (isKept ? `. Where it is lost, -take_back has ${source} serve its copy again` : ""),
  );
}

/** Has the source serve its copy again. What the target has comes too late from then on: that is a copy of before. */
function* takeBack(now: Moment, move: RootMove): Plan<RootMove> {
  const { moveId, owner, rootId, source, target, state } = move;
  const isThere = move.problem === "";
  if (state === "returned") return move;
  if (state !== "switched") throw bad(`${source} keeps no copy of the root of ${owner} (${state})`);
  const known = yield* nodes(now);
  if (isThere && known.some(({ fsId, live }) => fsId === target && live))
    throw bad(`${target} runs, and has the root of ${owner}: confirm the move, then move the root back`);
  if (known.some(({ fsId, onEngine }) => fsId === source && onEngine === true))
    throw bad(`the copy of the root of ${owner} lies in the shared engine, which gives none back`);
  const place = [source, owner, rootId, target] as const;
  const changes = yield* run(
    "UPDATE roots SET fs_id = ?, version = 0 WHERE owner = ? AND root_id = ? AND fs_id = ?",
    ...place,
  );
  if (changes !== 1) throw bad(`the root of ${owner} is not on ${target} any more`);
  if (isThere) yield* expectCopyAt(target);
  // The source tells them as they were.
  yield* run("DELETE FROM grants WHERE owner = ?", owner);
  yield* noteArrival(rootId, idBehind(moveId));
  return yield* change(now, move, { state: "returned", ended: ["target"], problem: "" });
}

/** Moves of a node, with the other's address; also those that it may take over. */
export function* movesOf(now: Moment, caller: NodeCaller): Plan<NodeMove[]> {
  yield* requireCaller(caller);
  const found: NodeMove[] = [];
  const known = listedOnce(now);
  const rows = yield* all<{ fs_id: string; address: string }>("SELECT fs_id, address FROM nodes");
  const addresses = new Map(rows.map((row) => [row.fs_id, row.address]));
  for (const stored of yield* rootMoves()) {
    const move = yield* seenBy(stored, caller, known);
    if (move === undefined) continue;
    const role = move.source === caller.fsId ? "source" : "target";
    const other = role === "source" ? move.target : move.source;
    found.push({ ...move, role, otherAddress: addresses.get(other) ?? "" });
  }
  return found;
}

/** Takes a node's step. */
export function* advanceMove(
  now: Moment,
  caller: NodeCaller,
  moveId: string,
  step: MoveStep,
): Plan<RootMove> {
  yield* requireCaller(caller);
  const move = (yield* rootMoves()).find((one) => one.moveId === moveId);
  if (step.step === "recall") {
    const { owner, isArriving } = step;
    const known = isArriving ? (move ?? (yield* endedMove(now, { moveId, owner }))) : move;
    if (isArriving && known === undefined) throw noMove();
    if (known === undefined) return yield* recall(now, caller, { moveId, owner });
    if (isArriving) return known;
  }
  if (move === undefined) throw noMove();
  const stored = (yield* findMove(move.owner)) ?? move;
  const current = yield* seenBy(stored, caller, listedOnce(now));
  if (current === undefined) throw noMove();
  if (step.step === "adopt" && current.target !== caller.fsId) {
    if (current.source === caller.fsId) throw noMove();
    return yield* change(now, current, { target: caller.fsId, source: yield* holderOf(current) });
  }
  const role = roleOf(current, caller);
  switch (step.step) {
    case "adopt":
      return current;
    case "progress": {
      requireRole(role, "target");
      const { bytes, rows, left, problem } = step;
      if (current.state === "switched") return yield* noteWhetherThere(current, problem, listedOnce(now));
      return yield* change(now, current, { bytes, rows, left, problem });
    }
    case "freeze":
      requireRole(role, "target");
      requireState(current, "copying", "frozen");
      return yield* change(now, current, { state: "frozen", attempt: current.attempt + 1 });
    case "recall":
      requireRole(role, "source");
      return current;
    case "thaw":
      requireRole(role, "source");
      if (isLost(current)) {
        yield* settleLost(now, current);
        // What was decided comes with the node's moves, which name the other node.
        return current;
      }
      if (current.state !== "frozen" || current.attempt !== step.attempt) return current;
      return yield* change(now, current, { state: "copying" });
    case "switch":
      requireRole(role, "target");
      return yield* switchTo(now, current, step.attempt);
    default:
      requireState(current, "confirmed", "undone", "returned");
      return yield* end(now, current, role);
  }
}

/** The store is an older copy that has lost a move with a frozen root: all lists are asked for, which decide it. */
function* recall(
  now: Moment,
  { fsId }: NodeCaller,
  { moveId, owner }: Pick<RootMove, "moveId" | "owner">,
): Plan<RootMove> {
  if ((yield* findMove(owner)) !== undefined) throw noMove();
  const move = yield* lostMove(now, { moveId, owner, source: fsId });
  if (move === undefined) throw noMove();
  yield* requireRoomForMove();
  yield* awaitOlderRoots(now);
  return yield* settleLost(now, move);
}

function* requireRoomForMove(): Plan<void> {
  if ((yield* countMoves()) < ROOT_MOVES_MAX) return;
  throw new GroveError("OVERLOADED", `at most ${ROOT_MOVES_MAX} roots move at once; confirm some first`);
}

function* switchTo(now: Moment, move: RootMove, attempt: number): Plan<RootMove> {
  if (move.attempt !== attempt) throw takenBack();
  if (move.state === "switched" || move.state === "confirmed") return move;
  if (move.state !== "frozen") throw takenBack();
  const known = yield* nodes(now);
  const isOnEngine = (id: string): boolean =>
    known.some(({ fsId, onEngine }) => fsId === id && onEngine === true);
  const isHandedOver = isOnEngine(move.source) && isOnEngine(move.target);
  const changes = yield* run(
    "UPDATE roots SET fs_id = ?, held = 1 WHERE owner = ? AND fs_id IN (?, ?) AND root_id = ?",
    move.target,
    move.owner,
    move.source,
    // The lease of a root that was handed over may have told the store before.
    isHandedOver ? move.target : move.source,
    move.rootId,
  );
  if (changes !== 1) throw takenBack();
  yield* noteArrival(move.rootId, move.moveId);
  const news = { left: 0, problem: "" };
  // Nothing of it is left at the source.
  if (isHandedOver) return yield* change(now, move, { ...news, state: "confirmed" });
  if (isOnEngine(move.source) || isOnEngine(move.target)) yield* endLeases(move);
  return yield* change(now, move, { ...news, state: "switched" });
}

function* end(now: Moment, move: RootMove, role: "source" | "target"): Plan<RootMove> {
  const ended = [...new Set([...move.ended, role])];
  if (ended.length < 2) return yield* change(now, move, { ended });
  yield* dropMove(move);
  // What that one has is found as a copy from now on.
  if (move.state === "returned") yield* askForList(move.target);
  return { ...move, ended };
}

/** The source; or the target that had taken the root over from it, when another becomes the target. */
function* holderOf(move: RootMove): Plan<string> {
  const { owner, source, target } = move;
  if (!isUnderWay(move)) return source;
  const root = yield* get<{ fs_id: string }>("SELECT fs_id FROM roots WHERE owner = ?", owner);
  return root?.fs_id === target ? target : source;
}

/** Lists the nodes when they are first asked for. */
function listedOnce(now: Moment): () => Plan<readonly NodeRecord[]> {
  let known: readonly NodeRecord[] | undefined;
  return function* () {
    known ??= yield* nodes(now);
    return known;
  };
}

/**
 * The move as it is to a node: its own, one in the place of a source that has ended, or one whose target it may
 * become. Undefined for every other.
 */
function* seenBy(
  stored: RootMove,
  caller: NodeCaller,
  known: () => Plan<readonly NodeRecord[]>,
): Plan<RootMove | undefined> {
  if (stored.source === caller.fsId || stored.target === caller.fsId) return stored;
  const listed = yield* known();
  const move = asSource(stored, caller, listed);
  return move !== stored || mayTakeOver(stored, caller, listed) ? move : undefined;
}

/**
 * True for a node of the shared engine when the target is one that has ended: what has come lies in the engine,
 * where each of its nodes can go on with it.
 */
function mayTakeOver(move: RootMove, { fsId }: NodeCaller, known: readonly NodeRecord[]): boolean {
  if (move.source === fsId || move.ended.includes("target")) return false;
  const find = (id: string): NodeRecord | undefined => known.find((node) => node.fsId === id);
  const target = find(move.target);
  return find(fsId)?.onEngine === true && target?.onEngine === true && !target.live;
}

/**
 * The move as a node of the shared engine has it in the place of a source that has ended: what is left of the
 * root lies in the engine, where each node can remove it. Before the switch only who takes the root over may.
 */
function asSource(move: RootMove, { fsId }: NodeCaller, known: readonly NodeRecord[]): RootMove {
  if (move.ended.includes("source") || isUnderWay(move)) return move;
  const find = (id: string): NodeRecord | undefined => known.find((node) => node.fsId === id);
  const source = find(move.source);
  const isFree = find(fsId)?.onEngine === true && source?.onEngine === true && !source.live;
  return isFree ? { ...move, source: fsId } : move;
}

function roleOf(move: RootMove, { fsId }: NodeCaller): "source" | "target" {
  if (move.source === fsId) return "source";
  if (move.target === fsId) return "target";
  throw noMove();
}

function noMove(): GroveError {
  return new GroveError("NO_SUCH_PATH", "there is no such move");
}

function requireRole(role: "source" | "target", wanted: "source" | "target"): void {
  if (role !== wanted) throw bad(`this step is the ${wanted}'s`);
}

function requireState(move: RootMove, ...states: readonly RootMoveState[]): void {
  if (!states.includes(move.state)) throw bad(`the move is ${move.state}`);
}

function takenBack(): GroveError {
  return new GroveError("FENCED", "this attempt to switch was taken back");
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
