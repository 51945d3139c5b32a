// The time span of a page's charts, and the long-term history before the last hour.
import { useQuery } from "@tanstack/react-query";
import type { HistoryReply } from "#wire/webapi/performance.ts";
import { useAddressSearch } from "./address-search.ts";
import { call } from "./api.ts";

const HOUR = 3_600;
const DAY = 86_400;
const REFETCH_MS = 60_000;

/** The choices: a name for the address, a label, and seconds up to now. */
export const SPANS = [
  { value: "hour", label: "Last hour", seconds: HOUR },
  { value: "day", label: "Last 24 hours", seconds: DAY },
  { value: "week", label: "Last 7 days", seconds: 7 * DAY },
  { value: "month", label: "Last 30 days", seconds: 30 * DAY },
  { value: "year", label: "Last 400 days", seconds: 400 * DAY },
  { value: "around", label: "Around a moment", seconds: 2 * HOUR },
] as const;

/** A span up to now, or two hours around a moment. */
export interface Span {
  readonly name: (typeof SPANS)[number]["value"];
  readonly seconds: number;
  /** Unix seconds of the chosen moment; undefined without one. */
  readonly at: number | undefined;
}

/** The address's span; default the last hour. */
export function useSpan(): Span {
  const { search } = useAddressSearch();
  const { value: name, seconds } = SPANS.find(({ value }) => value === search.get("span")) ?? SPANS[0];
  const at = Number(search.get("at") ?? Number.NaN);
  return { name, seconds, at: Number.isSafeInteger(at) && at > 0 ? at : undefined };
}

/** Both ends of a span now, in unix seconds. */
function endsOf({ name, seconds, at }: Span): { readonly from: number; readonly to: number } {
  const now = Math.floor(Date.now() / 1_000);
  const to = name === "around" ? (at ?? now - DAY) + seconds / 2 : now;
  return { from: to - seconds, to: Math.min(to, now) };
}

/** GET /api/history/{id} for a span beyond the last hour. */
export function useLongHistory(
  id: string,
  span: Span,
): { readonly history: HistoryReply | undefined; readonly error: Error | null } {
  const query = useQuery({
    queryKey: ["long-history", id, span.name, span.at],
    queryFn: ({ signal }) => {
      const { from, to } = endsOf(span);
      return call<HistoryReply>(`/api/history/${encodeURIComponent(id)}?from=${from}&to=${to}&step=60`, {
        signal,
      });
    },
    refetchInterval: REFETCH_MS,
  });
  return { history: query.data, error: query.error };
}
