// What a chart shows, as a sentence.
import { plainNumber, UNKNOWN } from "./number.ts";
import { clockText } from "./time.ts";

/** "p95 write 4.1 ms, highest 31 ms at 14:02": the last value and the highest with its time. */
export function lastAndHighest(
  label: string,
  times: readonly number[],
  values: readonly (number | null)[],
  unit: string,
): string {
  let highest = -1;
  values.forEach((value, index) => {
    if (value !== null && (highest < 0 || value > (values[highest] ?? 0))) highest = index;
  });
  const top = values[highest];
  if (top === undefined || top === null) return `${label}: no figures in this hour`;
  const last = values.at(-1);
  const now = last === undefined || last === null ? UNKNOWN : `${plainNumber(last)} ${unit}`;
  return `${label} ${now}, highest ${plainNumber(top)} ${unit} at ${clockText(times[highest] ?? 0)}`;
}
