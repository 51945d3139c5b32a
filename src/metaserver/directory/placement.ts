// Chooses the node of a new user's root (D19): the one with the most free bytes above its reserve.

/** The facts about a node that placement compares. */
export interface PlacementCandidate {
  readonly fsId: string;
  readonly live: boolean;
  readonly draining: boolean;
  readonly diskFreeBytes: bigint;
  readonly diskReserveBytes: bigint;
  readonly rootCount: number;
}

/** Free bytes above the reserve; never negative. */
export function bytesAboveReserve(
  node: Pick<PlacementCandidate, "diskFreeBytes" | "diskReserveBytes">,
): bigint {
  return node.diskFreeBytes > node.diskReserveBytes ? node.diskFreeBytes - node.diskReserveBytes : 0n;
}

/**
 * Picks the live, not draining node with the most free bytes above its reserve; equals are ordered by fewer
 * roots, then by id. Undefined when no node qualifies (D19).
 */
export function chooseNode<Node extends PlacementCandidate>(nodes: readonly Node[]): Node | undefined {
  let best: Node | undefined;
  for (const node of nodes) {
    if (!node.live || node.draining) continue;
    if (best === undefined || isBetter(node, best)) best = node;
  }
  return best;
}

function isBetter(node: PlacementCandidate, best: PlacementCandidate): boolean {
  const bytes = bytesAboveReserve(node);
  const bestBytes = bytesAboveReserve(best);
  if (bytes !== bestBytes) return bytes > bestBytes;
  if (node.rootCount !== best.rootCount) return node.rootCount < best.rootCount;
  return node.fsId < best.fsId;
}
