// A chart's content as a sentence.
import { plainNumber, UNKNOWN } from "./number.ts";
import { clockText, formatMoment } from "./time.ts";

/** "p95 write 4.1 ms, highest 31 ms at 14:02": the last value and the highest with its time. */
export function lastAndHighest(
  label: string,
  times: readonly number[],
  values: readonly (number | null)[],
  unit: string,
): string {
  const highest = highestIndex(values);
  const top = values[highest];
  if (top === undefined || top === null) return `${label}: no figures in this hour`;
  const last = values.at(-1);
  const now = last === undefined || last === null ? UNKNOWN : `${plainNumber(last)} ${unit}`;
  return `${label} ${now}, highest ${plainNumber(top)} ${unit} at ${clockText(times[highest] ?? 0)}`;
}

/** "p95 write up to 31 ms, Nov 22, 2026, 2:02:00 PM": the highest value of a past span with its time. */
export function highestOf(
  label: string,
  times: readonly number[],
  values: readonly (number | null)[],
  unit: string,
): string {
  const highest = highestIndex(values);
  const top = values[highest];
  if (top === undefined || top === null) return `${label}: no figures in this time`;
  return `${label} up to ${plainNumber(top)} ${unit}, ${formatMoment(times[highest] ?? 0)}`;
}

function highestIndex(values: readonly (number | null)[]): number {
  let highest = -1;
  values.forEach((value, index) => {
    if (value !== null && (highest < 0 || value > (values[highest] ?? 0))) highest = index;
  });
  return highest;
}
