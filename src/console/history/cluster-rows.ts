// The cluster's rows: nodes' rows of a slot aggregated once, and again after a late row (D9).
import { HISTORY_SNAPSHOTS_PER_NODE } from "#base/limits.ts";
import { OPS_COLUMN, RING_COLUMNS, rounded } from "./columns.ts";
import type { SlotRing } from "./slot-ring.ts";

const SLOTS: number = HISTORY_SNAPSHOTS_PER_NODE;
const NO_SLOT = -1;
/** Values that are read before other work runs: about a millisecond. */
const FIGURES_PER_TURN = 100_000;
/** The fixed cost of a node in a range of any length, counted in values. */
const FIGURES_OF_A_NODE = 8;

/** A node's contribution to the cluster's rows. */
export interface NodeRows {
  readonly ring: SlotRing;
  /** Size of its disk in bytes; undefined while unknown. */
  readonly diskBytes: number | undefined;
}

/** Rows of the cluster by slot. Nodes with a gap are left out; a slot without any node is a gap. */
export class ClusterRows {
  readonly #nodes: () => Iterable<NodeRows>;
  readonly #values = new Float64Array(RING_COLUMNS.length * SLOTS).fill(Number.NaN);
  /** The slot that each place holds, or NO_SLOT. */
  readonly #slots = new Float64Array(SLOTS).fill(NO_SLOT);
  /** Slots whose rows changed during their computation. */
  readonly #changed = new Set<number>();
  #preparing: Promise<void> = Promise.resolve();

  constructor(nodes: () => Iterable<NodeRows>) {
    this.#nodes = nodes;
  }

  /** Discards the results of slots whose rows have changed. */
  invalidate(firstSlot: number, lastSlot: number): void {
    for (let slot = Math.max(firstSlot, lastSlot - SLOTS + 1); slot <= lastSlot; slot++) {
      this.#slots[slot % SLOTS] = NO_SLOT;
      this.#changed.add(slot);
    }
  }

  /**
   * Computes the missing slots of a range of at most 720, with pauses for other work. Concurrent callers
   * share one computation.
   */
  prepare(firstSlot: number, lastSlot: number): Promise<void> {
    this.#preparing = this.#preparing.then(async () => {
      let from = lastSlot + 1;
      let to = firstSlot - 1;
      for (let slot = firstSlot; slot <= lastSlot; slot++) {
        if (this.#slots[slot % SLOTS] === slot) continue;
        from = Math.min(from, slot);
        to = slot;
      }
      if (from <= to) await this.#workOut(from, to);
    });
    return this.#preparing;
  }

  /** A value; NaN for a gap, and for slots that were not prepared. */
  at(column: number, slot: number): number {
    return this.#values[column * SLOTS + (slot % SLOTS)] ?? Number.NaN;
  }

  async #workOut(firstSlot: number, lastSlot: number): Promise<void> {
    this.#changed.clear();
    const length = lastSlot - firstSlot + 1;
    const sums = new Sums(length);
    let figures = 0;
    for (const node of this.#nodes()) {
      sums.add(node, firstSlot);
      figures += (length + FIGURES_OF_A_NODE) * RING_COLUMNS.length;
      if (figures < FIGURES_PER_TURN) continue;
      figures = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (let index = 0; index < length; index++) {
      const slot = firstSlot + index;
      RING_COLUMNS.forEach(({ decimals }, column) => {
        this.#values[column * SLOTS + (slot % SLOTS)] = rounded(sums.result(column, index), decimals);
      });
      this.#slots[slot % SLOTS] = this.#changed.has(slot) ? NO_SLOT : slot;
    }
    this.#changed.clear();
  }
}

/** Aggregates rows of nodes over a range of slots. */
class Sums {
  readonly #length: number;
  /** By column: sums, or maxima. NaN before the first value. */
  readonly #totals: Float64Array;
  readonly #weights: Float64Array;
  /** The unweighted mean, used where not all disks have a known size. */
  readonly #plain: Float64Array;
  readonly #counts: Float64Array;
  readonly #unweighed: Uint8Array;
  readonly #figures: Float64Array;
  readonly #ops: Float64Array;
  readonly #alike: Float64Array;

  constructor(length: number) {
    this.#length = length;
    this.#totals = new Float64Array(RING_COLUMNS.length * length).fill(Number.NaN);
    this.#weights = new Float64Array(RING_COLUMNS.length * length);
    this.#plain = new Float64Array(length);
    this.#counts = new Float64Array(length);
    this.#unweighed = new Uint8Array(length);
    this.#figures = new Float64Array(length);
    this.#ops = new Float64Array(length);
    this.#alike = new Float64Array(length);
  }

  /** Adds a node's rows. */
  add({ ring, diskBytes }: NodeRows, firstSlot: number): void {
    ring.read(OPS_COLUMN, firstSlot, this.#ops);
    for (let column = 0; column < RING_COLUMNS.length; column++) {
      const how = RING_COLUMNS[column]?.acrossNodes;
      ring.read(column, firstSlot, this.#figures);
      if (how === "sum") this.#sum(column);
      else if (how === "max") this.#max(column);
      else if (how === "mean_by_ops") this.#weigh(column, this.#ops);
      else this.#weigh(column, this.#alike.fill(how === "mean" ? 1 : (diskBytes ?? 0)));
      if (how === "mean_by_disk") this.#weighAlike(diskBytes);
    }
  }

  /** A value over all added nodes. */
  result(column: number, index: number): number {
    const place = column * this.#length + index;
    const total = this.#totals[place] ?? Number.NaN;
    const how = RING_COLUMNS[column]?.acrossNodes;
    if (how === "sum" || how === "max") return total;
    if (how === "mean_by_disk" && this.#unweighed[index] === 1) {
      return (this.#plain[index] ?? 0) / (this.#counts[index] ?? 0);
    }
    return total / (this.#weights[place] ?? 0);
  }

  #sum(column: number): void {
    const base = column * this.#length;
    for (let index = 0; index < this.#length; index++) {
      const figure = this.#figures[index] as number;
      if (Number.isNaN(figure)) continue;
      const before = this.#totals[base + index] as number;
      this.#totals[base + index] = Number.isNaN(before) ? figure : before + figure;
    }
  }

  #max(column: number): void {
    const base = column * this.#length;
    for (let index = 0; index < this.#length; index++) {
      const figure = this.#figures[index] as number;
      const before = this.#totals[base + index] as number;
      if (Number.isNaN(before) || figure > before) this.#totals[base + index] = figure;
    }
  }

  #weigh(column: number, weights: Float64Array): void {
    const base = column * this.#length;
    for (let index = 0; index < this.#length; index++) {
      const figure = this.#figures[index] as number;
      const weight = weights[index] as number;
      if (Number.isNaN(figure) || !(weight > 0)) continue;
      const before = this.#totals[base + index] as number;
      this.#totals[base + index] = (Number.isNaN(before) ? 0 : before) + figure * weight;
      this.#weights[base + index] = (this.#weights[base + index] as number) + weight;
    }
  }

  #weighAlike(diskBytes: number | undefined): void {
    for (let index = 0; index < this.#length; index++) {
      const figure = this.#figures[index] as number;
      if (Number.isNaN(figure)) continue;
      this.#plain[index] = (this.#plain[index] as number) + figure;
      this.#counts[index] = (this.#counts[index] as number) + 1;
      if (!(diskBytes !== undefined && diskBytes > 0)) this.#unweighed[index] = 1;
    }
  }
}
