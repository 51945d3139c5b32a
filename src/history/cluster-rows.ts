// The cluster's rows: those of all nodes in a slot made one, worked out once for each slot and again when a row comes late (D9).
import { HISTORY_SNAPSHOTS_PER_NODE } from "#base/limits.ts";
import { OPS_COLUMN, RING_COLUMNS, rounded } from "./columns.ts";

/** Slots that are worked out before other work gets its turn: with 1,000 nodes about a millisecond. */
const SLOTS_PER_TURN = 32;
const NO_SLOT = -1;

/** A node, as far as its part in the cluster goes. */
export interface NodeRows {
  at(column: number, slot: number): number;
  /** Size of its disk in bytes; undefined while it is not known. */
  readonly diskBytes: number | undefined;
}

/** Rows of the cluster by slot. A node with a gap counts as nothing; a slot in which all have one is a gap. */
export class ClusterRows {
  readonly #nodes: () => Iterable<NodeRows>;
  readonly #values = new Float64Array(RING_COLUMNS.length * HISTORY_SNAPSHOTS_PER_NODE);
  /** For each place the slot that it holds, or NO_SLOT. */
  readonly #slots = new Float64Array(HISTORY_SNAPSHOTS_PER_NODE).fill(NO_SLOT);

  constructor(nodes: () => Iterable<NodeRows>) {
    this.#nodes = nodes;
  }

  /** Forgets what was worked out for slots, since a row in them has changed. */
  invalidate(firstSlot: number, lastSlot: number): void {
    const first = Math.max(firstSlot, lastSlot - HISTORY_SNAPSHOTS_PER_NODE + 1);
    for (let slot = first; slot <= lastSlot; slot++) this.#slots[slot % HISTORY_SNAPSHOTS_PER_NODE] = NO_SLOT;
  }

  /** Works out what is missing of a range of at most 720 slots, other work in between. */
  async prepare(firstSlot: number, lastSlot: number): Promise<void> {
    let worked = 0;
    for (let slot = firstSlot; slot <= lastSlot; slot++) {
      if (this.#slots[slot % HISTORY_SNAPSHOTS_PER_NODE] === slot) continue;
      this.#workOut(slot);
      worked++;
      if (worked % SLOTS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** A figure; NaN where there is none, and in slots that were not prepared. */
  at(column: number, slot: number): number {
    const place = slot % HISTORY_SNAPSHOTS_PER_NODE;
    if (this.#slots[place] !== slot) return Number.NaN;
    return this.#values[column * HISTORY_SNAPSHOTS_PER_NODE + place] ?? Number.NaN;
  }

  #workOut(slot: number): void {
    const place = slot % HISTORY_SNAPSHOTS_PER_NODE;
    const nodes = [...this.#nodes()];
    RING_COLUMNS.forEach(({ acrossNodes, decimals }, column) => {
      const value = JOIN[acrossNodes](nodes, column, slot);
      this.#values[column * HISTORY_SNAPSHOTS_PER_NODE + place] = rounded(value, decimals);
    });
    this.#slots[place] = slot;
  }
}

type Join = (nodes: readonly NodeRows[], column: number, slot: number) => number;

const JOIN: Readonly<Record<(typeof RING_COLUMNS)[number]["acrossNodes"], Join>> = {
  sum: (nodes, column, slot) => reduce(nodes, column, slot, (sum, value) => sum + value),
  max: (nodes, column, slot) => reduce(nodes, column, slot, Math.max),
  mean: (nodes, column, slot) => weighted(nodes, column, slot, () => 1),
  mean_by_ops: (nodes, column, slot) => weighted(nodes, column, slot, (node) => node.at(OPS_COLUMN, slot)),
  // Before every node has said how large it is, all count alike.
  mean_by_disk: (nodes, column, slot) =>
    nodes.every((node) => Number.isNaN(node.at(column, slot)) || node.diskBytes !== undefined)
      ? weighted(nodes, column, slot, (node) => node.diskBytes ?? 0)
      : weighted(nodes, column, slot, () => 1),
};

function reduce(
  nodes: readonly NodeRows[],
  column: number,
  slot: number,
  join: (before: number, value: number) => number,
): number {
  let result = Number.NaN;
  for (const node of nodes) {
    const value = node.at(column, slot);
    if (!Number.isNaN(value)) result = Number.isNaN(result) ? value : join(result, value);
  }
  return result;
}

function weighted(
  nodes: readonly NodeRows[],
  column: number,
  slot: number,
  weightOf: (node: NodeRows) => number,
): number {
  let sum = 0;
  let weights = 0;
  for (const node of nodes) {
    const value = node.at(column, slot);
    const weight = weightOf(node);
    if (Number.isNaN(value) || !(weight > 0)) continue;
    sum += value * weight;
    weights += weight;
  }
  return weights > 0 ? sum / weights : Number.NaN;
}
