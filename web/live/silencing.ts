// Makes and ends silences: no notifications for a while, though alerts are still recorded.
import { useMutation, useQuery } from "@tanstack/react-query";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import type { Silence, SilenceMatcher } from "#wire/webapi/notification.ts";
import { call } from "./api.ts";
import { queryClient } from "./query-client.ts";

const KEY = ["silences"] as const;
const POLL_MS = 30_000;

/** An end ("2h", "tomorrow 08:00") in a request: by the console's clock, which this machine's may differ from. */
export function askedEnd(end: string): object {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  return { duration: end, time_zone: timeZone };
}

/** Matchers, end and reason of a new silence. */
export interface SilenceRequest {
  readonly matchers: readonly SilenceMatcher[];
  readonly endsAt: string;
  readonly comment: string;
}

/** GET /api/silences without ended ones. */
export function useSilences(): {
  readonly silences: readonly Silence[] | undefined;
  readonly error: Error | null;
} {
  const query = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => call<{ silences: Silence[] }>("/api/silences", { signal }),
    // They end by themselves, and other operators make some.
    refetchInterval: POLL_MS,
  });
  return { silences: query.data?.silences.filter(({ state }) => state !== "expired"), error: query.error };
}

/** Makes a silence. */
export function useSilencing(onDone?: (silence: Silence) => void): {
  readonly silence: (request: SilenceRequest) => void;
  readonly isBusy: boolean;
  readonly error: Error | null;
} {
  const make = useMutation({
    mutationFn: ({ matchers, endsAt, comment }: SilenceRequest) =>
      call<Silence>("/api/silences", { method: "POST", body: { matchers, ...askedEnd(endsAt), comment } }),
    onSuccess: async (made) => {
      await queryClient.invalidateQueries({ queryKey: KEY });
      onDone?.(made);
    },
  });
  return { silence: (request) => make.mutate(request), isBusy: make.isPending, error: make.error };
}

/** Ends a silence now. */
export function useSilenceEnd(): { readonly end: (id: string) => void; readonly error: Error | null } {
  const ending = useMutation({
    mutationFn: (id: string) => call(`/api/silences/${encodeURIComponent(id)}`, { method: "DELETE" }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: KEY }),
  });
  return { end: (id) => ending.mutate(id), error: ending.error };
}

/** Matchers for alerts of this type, with its node and user if it has them. */
export function matchersOf(alert: AlertRecord): SilenceMatcher[] {
  const wanted = { type: alert.type, node_id: alert.node_id, username: alert.username };
  return Object.entries(wanted).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name: name as SilenceMatcher["name"], value, is_regex: false }],
  );
}
