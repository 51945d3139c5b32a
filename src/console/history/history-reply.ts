// Builds the answer of GET /api/history: rows of one range and step, oldest first (decision D9).
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import { HISTORY_COLUMNS, type HistoryReply } from "#wire/webapi/performance.ts";
import { aggregatedRows } from "./aggregated-rows.ts";
import { RING_COLUMNS, rounded, SHOWN_COLUMNS } from "./columns.ts";
import type { RowRange } from "./recent-hour.ts";

const SLOT_SECONDS: number = POLL_INTERVAL_MS / 1_000;

/** The requested part of the last hour. Unix seconds; times outside the hour are left out. */
export interface HistoryQuery {
  /** The first second; default the oldest kept. */
  readonly from?: number;
  /** The last second; default the newest. */
  readonly to?: number;
  /** Seconds per point, a multiple of 5; points begin at its multiples; default 5. */
  readonly step?: number;
}

/**
 * The points of a range, whose slots have the poll interval's length unless another is named. With a step
 * above 5, rates and gauges are means of known values, percentiles maxima, and error rates weigh by
 * operations. A point without any known value is a row of nulls after its time.
 */
export function historyReply(
  nodeId: string,
  range: RowRange | undefined,
  query: HistoryQuery,
  nowUnix: number,
  slotSeconds: number = SLOT_SECONDS,
): HistoryReply {
  const step = query.step ?? slotSeconds;
  const slotsPerPoint = step / slotSeconds;
  const points: (number | null)[][] = [];
  if (range !== undefined) {
    const first = Math.max(range.firstSlot, Math.ceil((query.from ?? 0) / slotSeconds));
    const last = Math.min(range.lastSlot, Math.floor((query.to ?? Number.POSITIVE_INFINITY) / slotSeconds));
    for (let start = first; start <= last; ) {
      const pointSlot = Math.floor(start / slotsPerPoint) * slotsPerPoint;
      const end = Math.min(last, pointSlot + slotsPerPoint - 1);
      points.push(pointOf(range, pointSlot * slotSeconds, start, end));
      start = end + 1;
    }
  }
  const from = points[0]?.[0] ?? query.from ?? nowUnix;
  const to = points.at(-1)?.[0] ?? query.to ?? nowUnix;
  return { node_id: nodeId, interval_seconds: step, from, to, columns: [...HISTORY_COLUMNS], points };
}

function pointOf(range: RowRange, ts: number, start: number, end: number): (number | null)[] {
  const point: (number | null)[] = [ts];
  for (let column = 0; column < SHOWN_COLUMNS; column++) {
    const { decimals, aggregatedRows: how } = RING_COLUMNS[column] as (typeof RING_COLUMNS)[number];
    const value =
      start === end
        ? range.at(column, start)
        : aggregatedRows(range, column, { first: start, last: end }, how);
    point.push(Number.isNaN(value) ? null : rounded(value, decimals));
  }
  return point;
}
