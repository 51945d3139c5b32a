// Sentences about the long-term history: its resolution, or its absence.
import type { HistoryReply } from "#wire/webapi/performance.ts";
import { formatMoment, formatSpan } from "./time.ts";

/** The sentence above such charts, or in place of empty ones. */
export function longHistoryText(
  reply: Pick<HistoryReply, "from" | "interval_seconds" | "kept_from" | "to">,
  isEmpty: boolean,
): string {
  const { from, to, interval_seconds: seconds, kept_from: keptFrom } = reply;
  if (keptFrom === null || keptFrom === undefined) {
    return "Nothing is kept beyond the last hour yet; the first rows are here within minutes.";
  }
  if (to < keptFrom) return `Nothing is kept of this time: figures go back to ${formatMoment(keptFrom)}.`;
  if (isEmpty) return "Nothing is kept of this time: no node was heard, or the console did not run.";
  const point = `One point is ${formatSpan(seconds)}: means, percentiles at their highest.`;
  if (from + seconds >= keptFrom) return point;
  return `${point} Nothing is kept of the time before ${formatMoment(keptFrom)}.`;
}
