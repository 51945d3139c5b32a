// Plans which roots go to which nodes: when a node is drained, and when nodes are brought into balance (D27).
import { bytesAboveReserve, chooseNode, type PlacementCandidate } from "./placement.ts";
import type { RootSize } from "./root-move.ts";

/** A root and the node that it shall go to. */
export interface PlannedMove extends RootSize {
  readonly source: string;
  readonly target: string;
}

/** A root for which no node has room. */
export interface RootWithoutRoom extends RootSize {
  /** Bytes that the roomiest node lacks; the root's bytes where no node takes roots. */
  readonly missingBytes: bigint;
}

/** A node that a plan looks at. */
export interface PlanNode extends PlacementCandidate {
  /** Set where its roots lie in the shared engine: only a drain that is to go there names it. */
  readonly onEngine?: true;
}

/** What a drain does. */
export interface DrainPlan {
  readonly moves: readonly PlannedMove[];
  readonly withoutRoom: readonly RootWithoutRoom[];
}

/** A node with room to be filled by a plan. */
type Room<Node extends PlacementCandidate> = { -readonly [Key in keyof Node]: Node[Key] };

/**
 * Places each root of a node on another: the largest first, each where placement would put a new root then,
 * with all before it counted. A root that does not fit there fits nowhere. Nodes in `taken` get bytes that
 * are on their way already.
 */
export function planDrain(
  source: string,
  roots: readonly RootSize[],
  nodes: readonly PlanNode[],
  taken: ReadonlyMap<string, number> = new Map(),
): DrainPlan {
  const targets = roomsOf(nodes.filter(({ fsId, onEngine }) => fsId !== source && onEngine !== true));
  for (const target of targets) fill(target, taken.get(target.fsId) ?? 0);
  const moves: PlannedMove[] = [];
  const withoutRoom: RootWithoutRoom[] = [];
  for (const root of roots.toSorted(largestFirst)) {
    const target = chooseNode(targets);
    const missingBytes = BigInt(root.bytes) - (target === undefined ? 0n : bytesAboveReserve(target));
    if (target === undefined || missingBytes > 0n) {
      withoutRoom.push({ ...root, missingBytes });
      continue;
    }
    fill(target, root.bytes);
    target.rootCount++;
    moves.push({ ...root, source, target: target.fsId });
  }
  return { moves, withoutRoom };
}

/** Places each root of a node on one of the shared engine, where no disk of a node limits them. */
export function planDrainToEngine(
  source: string,
  roots: readonly RootSize[],
  nodes: readonly PlanNode[],
): DrainPlan {
  const targets = roomsOf(nodes.filter(({ fsId }) => fsId !== source));
  const moves: PlannedMove[] = [];
  const withoutRoom: RootWithoutRoom[] = [];
  for (const root of roots.toSorted(largestFirst)) {
    const target = chooseEngineNode(targets);
    if (target === undefined) {
      withoutRoom.push({ ...root, missingBytes: BigInt(root.bytes) });
      continue;
    }
    target.rootCount++;
    moves.push({ ...root, source, target: target.fsId });
  }
  return { moves, withoutRoom };
}

/** True for a running node of the shared engine that is in service. */
export function takesForEngine({ live, draining, onEngine }: PlanNode): boolean {
  return live && !draining && onEngine === true;
}

/** The running node of the shared engine with the fewest roots; undefined without one. */
export function chooseEngineNode<Node extends PlanNode>(nodes: readonly Node[]): Node | undefined {
  return nodes
    .filter(takesForEngine)
    .toSorted((a, b) => a.rootCount - b.rootCount || (a.fsId < b.fsId ? -1 : 1))[0];
}

/** A node with its disk and the sizes of its roots. */
export interface SizedNode extends PlanNode {
  readonly diskTotalBytes: bigint;
  /** Undefined when it has not told them: then its roots stay. */
  readonly roots: readonly RootSize[] | undefined;
}

/** Moves that one rebalancing proposes. */
export const REBALANCE_MOVES_MAX = 1_000;
/** Nodes whose free shares differ by less are in balance. */
const BALANCED_SHARE = 0.05;

/**
 * Moves that bring nodes into balance: from the node with the least free share of its disk to the one with
 * the most, until the shares differ by less than a twentieth. Each takes the largest root that leaves the
 * former fuller one no emptier than the other. Then numbers of roots, where bytes allow it.
 */
export function planRebalance(nodes: readonly SizedNode[]): PlannedMove[] {
  const takers = nodes.filter(({ live, draining, onEngine }) => live && !draining && onEngine !== true);
  const rooms = takers.map((node) => ({
    ...node,
    roots: [...(node.roots ?? [])].toSorted(largestFirst),
  }));
  const moves: PlannedMove[] = [];
  while (moves.length < REBALANCE_MOVES_MAX) {
    const move = nextByBytes(rooms) ?? nextByNumber(rooms);
    if (move === undefined) break;
    moves.push(move);
  }
  return shortened(moves);
}

type BalancedRoom = Room<SizedNode> & { roots: RootSize[] };

function nextByBytes(rooms: readonly BalancedRoom[]): PlannedMove | undefined {
  const byShare = rooms.toSorted((a, b) => freeShare(a) - freeShare(b) || (a.fsId < b.fsId ? -1 : 1));
  const [fullest, emptiest] = [byShare[0], byShare.at(-1)];
  if (fullest === undefined || emptiest === undefined || fullest === emptiest) return undefined;
  if (freeShare(emptiest) - freeShare(fullest) < BALANCED_SHARE) return undefined;
  const root = fullest.roots.find(
    ({ bytes }) => bytes > 0 && freeShare(emptiest, -bytes) >= freeShare(fullest, bytes),
  );
  return root === undefined ? undefined : shift(root, fullest, emptiest);
}

function nextByNumber(rooms: readonly BalancedRoom[]): PlannedMove | undefined {
  const byNumber = rooms.toSorted((a, b) => b.rootCount - a.rootCount || (a.fsId < b.fsId ? -1 : 1));
  const [most, fewest] = [byNumber[0], byNumber.at(-1)];
  if (most === undefined || fewest === undefined) return undefined;
  if (most.rootCount - fewest.rootCount < 2 || most.rootCount < fewest.rootCount * 1.1) return undefined;
  const root = most.roots.findLast(({ bytes }) => keepsShares(rooms, most, fewest, bytes));
  return root === undefined ? undefined : shift(root, most, fewest);
}

/** Whether a move for the number's sake has room, and leaves all shares in balance or no further apart. */
function keepsShares(
  rooms: readonly BalancedRoom[],
  from: BalancedRoom,
  to: BalancedRoom,
  bytes: number,
): boolean {
  if (BigInt(bytes) > bytesAboveReserve(to)) return false;
  const before = rooms.map((room) => freeShare(room));
  const after = rooms.map((room) => freeShare(room, room === from ? bytes : room === to ? -bytes : 0));
  const spread = spreadOf(after);
  return spread < BALANCED_SHARE || spread <= spreadOf(before);
}

const spreadOf = (shares: readonly number[]): number => Math.max(...shares) - Math.min(...shares);

function shift(root: RootSize, from: BalancedRoom, to: BalancedRoom): PlannedMove {
  from.roots = from.roots.filter(({ owner }) => owner !== root.owner);
  to.roots = [...to.roots, root].toSorted(largestFirst);
  from.diskFreeBytes += BigInt(root.bytes);
  fill(to, root.bytes);
  from.rootCount--;
  to.rootCount++;
  return { ...root, source: from.fsId, target: to.fsId };
}

/** Joins moves of one root, so that each moves once; one that would come back does not move. */
function shortened(moves: readonly PlannedMove[]): PlannedMove[] {
  const byOwner = new Map<string, PlannedMove>();
  for (const move of moves) {
    byOwner.set(move.owner, { ...move, source: byOwner.get(move.owner)?.source ?? move.source });
  }
  return [...byOwner.values()].filter(({ source, target }) => source !== target);
}

/** Free bytes above the reserve as a part of the disk, after a change of the free bytes. */
function freeShare(node: SizedNode, change = 0): number {
  return (Number(bytesAboveReserve(node)) + change) / Math.max(1, Number(node.diskTotalBytes));
}

function roomsOf<Node extends PlacementCandidate>(nodes: readonly Node[]): Room<Node>[] {
  return nodes.map((node) => ({ ...node }));
}

function fill(node: Room<PlacementCandidate>, bytes: number): void {
  const left = node.diskFreeBytes - BigInt(bytes);
  node.diskFreeBytes = left < 0n ? 0n : left;
}

function largestFirst(a: RootSize, b: RootSize): number {
  return b.bytes - a.bytes || (a.owner < b.owner ? -1 : 1);
}
