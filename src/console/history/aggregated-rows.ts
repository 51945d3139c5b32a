// Aggregates rows of several moments into one (decision D9).
import { OPS_COLUMN, type RING_COLUMNS } from "./columns.ts";
import type { RowRange } from "./recent-hour.ts";

/**
 * A column's value over slots, first and last included: mean of known values, maximum, or mean by operations;
 * NaN without any.
 */
export function aggregatedRows(
  range: Pick<RowRange, "at">,
  column: number,
  slots: { readonly first: number; readonly last: number },
  how: (typeof RING_COLUMNS)[number]["aggregatedRows"],
): number {
  let max = Number.NaN;
  let sum = 0;
  let weights = 0;
  for (let slot = slots.first; slot <= slots.last; slot++) {
    const value = range.at(column, slot);
    if (Number.isNaN(value)) continue;
    max = Number.isNaN(max) ? value : Math.max(max, value);
    const weight = how === "mean_by_ops" ? range.at(OPS_COLUMN, slot) : 1;
    if (!(weight > 0)) continue;
    sum += value * weight;
    weights += weight;
  }
  if (how === "max") return max;
  return weights > 0 ? sum / weights : Number.NaN;
}
