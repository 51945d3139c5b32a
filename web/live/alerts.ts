// Alerts as the pages read them.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { z } from "zod";
import type { AlertRecord, alertList, alertSummary } from "#wire/webapi/alert.ts";
import { gravestFirst } from "../words/alert.ts";
import { call } from "./api.ts";
import { ALERTS_KEY, usePhase } from "./cluster.ts";
import { useIsOperator } from "./session.ts";

const POLL_MS = 10_000;
/** So many of the newest are read to find the gravest: a critical one must not hide behind newer warnings. */
const READ_FOR_GRAVEST = 200;
/** How often visitors ask for the count of what they do not see, and everybody for the numbers in the texts of alerts that stay. */
const COUNT_POLL_MS = 30_000;

/** GET /api/alerts/summary, read again with every alert that comes over the socket; visitors hear of some only by asking. */
export function useAlertSummary(): z.infer<typeof alertSummary> | undefined {
  const phase = usePhase();
  const isOperator = useIsOperator();
  return useQuery({
    queryKey: [...ALERTS_KEY, "summary"],
    queryFn: ({ signal }) => call<z.infer<typeof alertSummary>>("/api/alerts/summary", { signal }),
    refetchInterval: phase !== "live" ? POLL_MS : isOperator ? false : COUNT_POLL_MS,
  }).data;
}

/** Unresolved alerts that ask for something: critical and warning ones. */
export function useUnresolvedCount(): number {
  const summary = useAlertSummary();
  return summary === undefined ? 0 : summary.critical + summary.warning;
}

/** GET /api/alerts with filters, read again with every alert that comes over the socket. */
export function useAlertList(filters: URLSearchParams): {
  readonly alerts: readonly AlertRecord[] | undefined;
  readonly total: number;
  readonly error: Error | null;
} {
  const phase = usePhase();
  const search = filters.toString();
  const query = useQuery({
    queryKey: [...ALERTS_KEY, "list", search],
    queryFn: ({ signal }) => call<z.infer<typeof alertList>>(`/api/alerts?${search}`, { signal }),
    refetchInterval: phase === "live" ? COUNT_POLL_MS : POLL_MS,
    placeholderData: (before) => before,
  });
  return { alerts: query.data?.alerts, total: query.data?.total ?? 0, error: query.error };
}

/** The gravest of the unresolved alerts that ask for something, of the same gravity the newest first; undefined until they were read. */
export function useGravest(limit: number): {
  readonly alerts: readonly AlertRecord[] | undefined;
  readonly total: number;
  readonly error: Error | null;
} {
  const { alerts, ...rest } = useAlertList(
    new URLSearchParams({
      unresolved: "true",
      severity: "critical,warning",
      limit: String(READ_FOR_GRAVEST),
    }),
  );
  const gravest = useMemo(() => alerts && gravestFirst(alerts), [alerts]);
  return { alerts: gravest?.slice(0, limit), ...rest };
}
