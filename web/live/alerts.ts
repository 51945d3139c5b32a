// Alerts as the pages read them.
import { useQuery } from "@tanstack/react-query";
import type { z } from "zod";
import type { AlertRecord, alertSummary } from "#webapi/alert.ts";
import { call } from "./api.ts";
import { ALERTS_KEY, useConnection } from "./cluster.ts";

const POLL_MS = 10_000;

/** GET /api/alerts/summary, read again with every alert that comes over the socket. */
export function useAlertSummary(): z.infer<typeof alertSummary> | undefined {
  const { phase } = useConnection();
  return useQuery({
    queryKey: [...ALERTS_KEY, "summary"],
    queryFn: ({ signal }) => call<z.infer<typeof alertSummary>>("/api/alerts/summary", { signal }),
    refetchInterval: phase === "live" ? false : POLL_MS,
  }).data;
}

/** Unresolved alerts that ask for something: critical and warning ones. */
export function useUnresolvedCount(): number {
  const summary = useAlertSummary();
  return summary === undefined ? 0 : summary.critical + summary.warning;
}

/** The unresolved alerts, the worst first; undefined until they were read. */
export function useUnresolved(limit: number): {
  readonly alerts: readonly AlertRecord[] | undefined;
  readonly error: Error | null;
} {
  const { phase } = useConnection();
  const query = useQuery({
    queryKey: [...ALERTS_KEY, "unresolved", limit],
    queryFn: ({ signal }) =>
      call<{ alerts: AlertRecord[] }>(
        `/api/alerts?unresolved=true&severity=critical,warning&limit=${limit}`,
        { signal },
      ),
    refetchInterval: phase === "live" ? false : POLL_MS,
  });
  return { alerts: query.data?.alerts, error: query.error };
}
