// What commands and the console ask before and while roots move: sizes of roots, plans, what is in the way (D27).
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { ROOTS_LISTED_MAX } from "#base/limits.ts";
import type { Directory } from "./directory.ts";
import { type DrainPlan, planDrain, planDrainToEngine, type SizedNode } from "./move-plan.ts";
import { isUnderWay, type RootMove, type RootSize } from "./root-move.ts";

/** Roots that one drain or one rebalancing has on their way; a target pulls one of them after the other. */
export const MOVES_AT_ONCE = 4;
/** How long nodes may take to tell the sizes of their roots: two of their looks and a little. */
const SIZES_PATIENCE_MS = 12_000;
/** Refused confirmations that are named. */
const REFUSED_SHOWN = 20;
/** How often a caller looks at the store while it waits. */
const LOOK_MS = 250;

/** What plans read, and the question for sizes. */
export type MovingStore = Pick<
  Directory,
  "drainedNodes" | "listRoots" | "nodes" | "rootMoves" | "rootSizes" | "wantRootSizes"
>;

/** Waits a moment. */
export function pause(clock: Pick<Clock, "after">, ms: number = LOOK_MS): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

/** All roots with files by the node on which they are. */
export async function rootsByNode(
  store: Pick<Directory, "listRoots">,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const byNode = new Map<string, string[]>();
  let after: string | undefined;
  for (;;) {
    const page = await store.listRoots(after);
    for (const { owner, fsId } of page) {
      const owners = byNode.get(fsId) ?? [];
      owners.push(owner);
      byNode.set(fsId, owners);
    }
    after = page.at(-1)?.owner;
    if (page.length < ROOTS_LISTED_MAX || after === undefined) return byNode;
  }
}

/**
 * All nodes with the sizes of their roots, asked now; drained ones count as such. A node of before, or one
 * that does not answer in time, has none.
 */
export async function sizedNodes(
  store: MovingStore,
  clock: Pick<Clock, "after" | "steadyMs">,
  wanted: readonly string[],
): Promise<readonly SizedNode[]> {
  const question = await store.wantRootSizes();
  const endMs = clock.steadyMs() + SIZES_PATIENCE_MS;
  let told = new Map<string, readonly RootSize[]>();
  const live = new Set((await store.nodes()).filter(({ live }) => live).map(({ fsId }) => fsId));
  while (wanted.some((fsId) => live.has(fsId) && !told.has(fsId)) && clock.steadyMs() < endMs) {
    await pause(clock);
    const answers = (await store.rootSizes()).filter((answer) => answer.question >= question);
    told = new Map(answers.map(({ fsId, sizes }) => [fsId, sizes]));
  }
  const drained = new Set(await store.drainedNodes());
  const nodes = await store.nodes();
  return nodes.map((node) => ({
    ...node,
    draining: node.draining || drained.has(node.fsId),
    roots: told.get(node.fsId),
  }));
}

/** What a drain of a node would do now. */
export interface DrainFacts {
  readonly plan: DrainPlan;
  /** Roots without a move. */
  readonly left: readonly RootSize[];
  /** Moves away from the node that have not switched. */
  readonly underWay: readonly RootMove[];
  readonly areSizesKnown: boolean;
  readonly nodes: readonly SizedNode[];
}

/**
 * Plans the drain of a node, with what is on its way already; to nodes of the shared engine or to the others.
 * Roots of the engine change hands within it.
 */
export async function drainFacts(
  id: string,
  store: MovingStore,
  clock: Pick<Clock, "after" | "steadyMs">,
  toEngine = false,
): Promise<DrainFacts> {
  const nodes = await sizedNodes(store, clock, [id]);
  const moves = await store.rootMoves();
  const underWay = moves.filter((move) => move.source === id && isUnderWay(move));
  const node = nodes.find(({ fsId }) => fsId === id);
  const told = node?.roots;
  const sizes = new Map(told?.map(({ owner, bytes }) => [owner, bytes]));
  const owners = (await rootsByNode(store)).get(id) ?? [];
  const left = owners
    .filter((owner) => !underWay.some((move) => move.owner === owner))
    .map((owner) => ({ owner, bytes: sizes.get(owner) ?? 0 }));
  const taken = new Map<string, number>();
  for (const { owner, target, bytes } of underWay) {
    const more = Math.max(0, (sizes.get(owner) ?? 0) - bytes);
    taken.set(target, (taken.get(target) ?? 0) + more);
  }
  return {
    plan:
      toEngine || node?.onEngine === true
        ? planDrainToEngine(id, left, nodes)
        : planDrain(id, left, nodes, taken),
    left,
    underWay,
    areSizesKnown: told !== undefined,
    nodes,
  };
}

/** Which further moves a drain or a rebalancing may begin. */
export interface MoveTurns {
  readonly free: number;
  /** Targets at which a move waits: no other begins there, so that those to other nodes go on. */
  readonly held: ReadonlySet<string>;
}

/** Counts the turns that these moves leave: one that waits takes none. */
export function moveTurns(moves: readonly RootMove[]): MoveTurns {
  const underWay = moves.filter(isUnderWay);
  const waiting = underWay.filter(({ problem }) => problem !== "");
  return {
    free: MOVES_AT_ONCE - (underWay.length - waiting.length),
    held: new Set(waiting.map(({ target }) => target)),
  };
}

/** Owners of roots that keep a node from being drained. */
export interface DrainObstacles {
  /** On their way to the node. */
  readonly coming: readonly string[];
  /** Come, and not confirmed: they cannot leave yet. */
  readonly arrived: readonly string[];
}

/** Reads what keeps a node from being drained. */
export async function drainObstacles(
  id: string,
  store: Pick<Directory, "rootMoves">,
): Promise<DrainObstacles> {
  const moves = (await store.rootMoves()).filter(({ target }) => target === id);
  const ownersOf = (some: readonly RootMove[]): string[] => some.map(({ owner }) => owner);
  return {
    coming: ownersOf(moves.filter(isUnderWay)),
    arrived: ownersOf(moves.filter(({ state }) => state === "switched")),
  };
}

/**
 * Confirms moves that have switched; how many. Those that are refused keep no other from it: throws BAD_ARGUMENT
 * with them at its end.
 */
export async function confirmMoves(
  store: Pick<Directory, "decideMove">,
  moves: readonly Pick<RootMove, "owner">[],
): Promise<number> {
  const refused: string[] = [];
  for (const { owner } of moves) {
    try {
      await store.decideMove(owner, "confirm");
    } catch (error) {
      if (!isGroveError(error, "BAD_ARGUMENT")) throw error;
      refused.push(error.message);
    }
  }
  if (refused.length === 0) return moves.length;
  const why = refused.slice(0, REFUSED_SHOWN).join("; ");
  throw new GroveError(
    "BAD_ARGUMENT",
    `${moves.length - refused.length} of ${moves.length} moves were confirmed: ${why}`,
  );
}

/** A node without roots that move already, or that wait to be confirmed: those stay where they are. */
export function withoutMoving(node: SizedNode, moves: readonly Pick<RootMove, "owner">[]): SizedNode {
  const moving = new Set(moves.map(({ owner }) => owner));
  return { ...node, roots: node.roots?.filter(({ owner }) => !moving.has(owner)) };
}
