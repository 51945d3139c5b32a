// The latencies of the last operations of one kind, and their exact nearest-rank percentiles (decision D12).
import type { LatencySummary } from "./metrics-document.ts";

/** Operations per kind over which latency percentiles are taken (decision D12). */
const LATENCY_WINDOW_OPERATIONS = 1_024;

/** A ring of latencies; recording is constant work, percentiles sort a copy on request. */
export class LatencyWindow {
  readonly #ring: Float64Array;
  #count = 0;
  #sumMs = 0;
  #next = 0;

  constructor(capacity: number = LATENCY_WINDOW_OPERATIONS) {
    this.#ring = new Float64Array(capacity);
  }

  /**
   * Adds a latency in milliseconds, dropping the oldest when full. Negative or non-finite ones count as 0
   * (C-01).
   */
  record(latencyMs: number): void {
    const countedMs = latencyMs > 0 && Number.isFinite(latencyMs) ? latencyMs : 0;
    this.#ring[this.#next] = countedMs;
    this.#sumMs += countedMs;
    this.#next = (this.#next + 1) % this.#ring.length;
    if (this.#count < this.#ring.length) this.#count++;
  }

  /**
   * The percentiles now, in milliseconds with three decimals; 0 without operations, which `samples` shows.
   */
  summary(): LatencySummary {
    const sorted = this.#ring.slice(0, this.#count).sort();
    return {
      p50Ms: round(nearestRank(sorted, 50)),
      p95Ms: round(nearestRank(sorted, 95)),
      p99Ms: round(nearestRank(sorted, 99)),
      samples: this.#count,
      sumMs: round(this.#sumMs),
    };
  }
}

/** The smallest value of an ascending list that percentile percent do not exceed; 0 for an empty list. */
export function nearestRank(sorted: ArrayLike<number>, percentile: number): number {
  const rank = Math.max(1, Math.ceil((percentile / 100) * sorted.length));
  return sorted[rank - 1] ?? 0;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
