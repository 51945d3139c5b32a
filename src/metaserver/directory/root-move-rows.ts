// Rows of moves of roots in the metadata store, and what other commands ask about them.
import { GroveError } from "#base/errors.ts";
import { all, get, getLocked, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import { isUnderWay, type RootMove } from "./root-move.ts";

/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const PREFIX = "root_move:";

interface Clocked {
  readonly wallMs: number;
}

/** All moves by owner. */
export function* rootMoves(_now?: Clocked): Plan<RootMove[]> {
  const rows = yield* all<{ value: string }>("SELECT value FROM settings WHERE key LIKE ?", `${PREFIX}%`);
  const moves = rows.map(({ value }) => JSON.parse(value) as RootMove);
  return moves.toSorted((a, b) => (a.owner < b.owner ? -1 : 1));
}

/** Roots that a node holds and the store has elsewhere already: it has not heard of its moves yet. */
export function* departedFrom(fsId: string): Plan<number> {
  const moves = yield* rootMoves();
  return moves.filter(({ source, state }) => source === fsId && state !== "copying" && state !== "undone")
    .length;
}

/** True while a root is to arrive at a node: a claim there must not make an empty one. */
export function* arrivesAt(owner: string, fsId: string): Plan<boolean> {
  const move = yield* findMove(owner);
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
    const goesBack = target === fsId && isUnderWay(move);
    if (ended.length === 2) yield* dropMove(move);
    else yield* changeMove(now, move, goesBack ? { ended, state: "undone" } : { ended });
  }
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
  const row = yield* get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM settings WHERE key LIKE ?",
    `${PREFIX}%`,
  );
  return Number(row?.count ?? 0n);
}

/** Forgets a move. */
export function* dropMove({ owner }: Pick<RootMove, "owner">): Plan<void> {
  yield* run("DELETE FROM settings WHERE key = ?", PREFIX + owner);
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
  return row === undefined ? undefined : (JSON.parse(row.value) as RootMove);
}

/** Stores a move. */
export function* putMove(move: RootMove): Plan<void> {
  yield* run(
    "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    PREFIX + move.owner,
    JSON.stringify(move),
  );
}
