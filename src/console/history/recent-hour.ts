// The last hour of every node and the cluster in memory: 720 rows each, gaps as nulls (spec 8, D9, W-15).
import type { Clock } from "#base/clock.ts";
import { HISTORY_SNAPSHOTS_PER_NODE, POLL_INTERVAL_MS } from "#base/limits.ts";
import { ClusterRows } from "./cluster-rows.ts";
import { RING_COLUMNS } from "./columns.ts";
import type { SeriesRows } from "./series-format.ts";
import { SlotRing } from "./slot-ring.ts";
import { isClockSet, slotAfter, slotOf } from "./slots.ts";

/** Nodes whose last hour is kept, 50 kB each; one more replaces the node silent longest. */
export const HISTORY_NODES_MAX = 2_048;

/** Slots that a poll may be late before its slot counts as missed. */
const LATE_SLOTS = 2;

/** A readable range of rows, of a node or of the cluster. */
export interface RowRange {
  readonly firstSlot: number;
  /** Below firstSlot without any row. */
  readonly lastSlot: number;
  /** A value by the index of its column; NaN is null. */
  readonly at: (column: number, slot: number) => number;
}

interface NodeHour {
  readonly ring: SlotRing;
  /** The last poll, good or not. */
  last: { readonly slot: number; readonly wallMs: number } | undefined;
  diskBytes: number | undefined;
  readonly at: (column: number, slot: number) => number;
}

/** The rings of all nodes. */
export class RecentHour {
  readonly #clock: Clock;
  readonly #nodes = new Map<string, NodeHour>();
  readonly #cluster = new ClusterRows(() => this.#nodes.values());

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True when a node has answered within the last hour. */
  has(nodeId: string): boolean {
    return this.#nodes.has(nodeId);
  }

  /** Records the row of a good poll. */
  record(nodeId: string, wallMs: number, row: ArrayLike<number>, diskBytes: number | undefined): void {
    const node = this.#node(nodeId);
    const slot = slotAfter(node.last, wallMs, POLL_INTERVAL_MS);
    this.#cluster.invalidate(slot, Math.max(slot, node.ring.newestSlot));
    node.ring.put(slot, row);
    node.last = { slot, wallMs };
    node.diskBytes = diskBytes ?? node.diskBytes;
  }

  /** Records a failed poll. A node that has never answered stays unknown. */
  recordGap(nodeId: string, wallMs: number): void {
    const node = this.#nodes.get(nodeId);
    if (node !== undefined) node.last = { slot: slotAfter(node.last, wallMs, POLL_INTERVAL_MS), wallMs };
  }

  /** The rows of a node's last hour; undefined for an unknown node. */
  range(nodeId: string): RowRange | undefined {
    const node = this.#nodes.get(nodeId);
    if (node === undefined) return undefined;
    const nowSlot = slotOf(this.#clock.wallMs(), POLL_INTERVAL_MS);
    const lastSlot = Math.max(node.last?.slot ?? node.ring.newestSlot, nowSlot - LATE_SLOTS);
    return {
      firstSlot: Math.max(node.ring.firstSlot, lastSlot - HISTORY_SNAPSHOTS_PER_NODE + 1),
      lastSlot: node.ring.isEmpty ? -1 : lastSlot,
      at: node.at,
    };
  }

  /** The rows of the cluster's last hour, up to the newest slot in which every polled node has its row. */
  async clusterRange(): Promise<RowRange> {
    const nowSlot = slotOf(this.#clock.wallMs(), POLL_INTERVAL_MS);
    let first = Number.POSITIVE_INFINITY;
    let lastSlot = nowSlot;
    for (const { ring, last } of this.#nodes.values()) {
      if (!ring.isEmpty) first = Math.min(first, ring.firstSlot);
      const newest = last?.slot ?? -1;
      lastSlot = Math.min(lastSlot, Math.max(newest, nowSlot - LATE_SLOTS));
    }
    const firstSlot = Math.max(Math.min(first, nowSlot + 1), lastSlot - HISTORY_SNAPSHOTS_PER_NODE + 1);
    if (firstSlot <= lastSlot) await this.#cluster.prepare(firstSlot, lastSlot);
    return { firstSlot, lastSlot, at: (column, slot) => this.#cluster.at(column, slot) };
  }

  /** Adds rows that were read from disk; rows in the future are dropped. */
  take(rows: SeriesRows): void {
    const nowMs = this.#clock.wallMs();
    const { ring } = this.#node(rows.id);
    ring.restore(rows);
    if (isClockSet(nowMs)) ring.cut(slotOf(nowMs, POLL_INTERVAL_MS) + LATE_SLOTS);
  }

  /** Removes all rows. */
  reset(): void {
    this.#nodes.clear();
  }

  /** Removes nodes without an answer in the last hour. */
  forgetSilent(): void {
    const oldest = slotOf(this.#clock.wallMs(), POLL_INTERVAL_MS) - HISTORY_SNAPSHOTS_PER_NODE;
    for (const [nodeId, { ring }] of this.#nodes) if (ring.newestSlot < oldest) this.#nodes.delete(nodeId);
  }

  /** The rings by node, for saving. */
  *rings(): Generator<readonly [nodeId: string, ring: SlotRing]> {
    for (const [nodeId, { ring }] of this.#nodes) yield [nodeId, ring];
  }

  #node(nodeId: string): NodeHour {
    let node = this.#nodes.get(nodeId);
    if (node === undefined) {
      if (this.#nodes.size >= HISTORY_NODES_MAX) this.#forgetOldest();
      const ring = new SlotRing(RING_COLUMNS.length, HISTORY_SNAPSHOTS_PER_NODE);
      node = { ring, last: undefined, diskBytes: undefined, at: (column, slot) => ring.at(column, slot) };
      this.#nodes.set(nodeId, node);
    }
    return node;
  }

  #forgetOldest(): void {
    let oldest: string | undefined;
    let oldestSlot = Number.POSITIVE_INFINITY;
    for (const [id, { ring }] of this.#nodes) {
      if (ring.newestSlot >= oldestSlot) continue;
      oldest = id;
      oldestSlot = ring.newestSlot;
    }
    if (oldest !== undefined) this.#nodes.delete(oldest);
  }
}
