// Reads alerts for the pages.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { z } from "zod";
import type { AlertRecord, alertList, alertSummary } from "#wire/webapi/alert.ts";
import { gravestFirst } from "../words/alert.ts";
import { call } from "./api.ts";
import { ALERTS_KEY, usePhase } from "./cluster.ts";
import { useIsOperator } from "./session.ts";

const POLL_MS = 10_000;
/** Newest alerts that are searched for the gravest: a critical one must not hide behind newer warnings. */
const READ_FOR_GRAVEST = 200;
/**
 * Poll interval for the count of alerts that visitors do not see, and for the figures in open alerts' texts.
 */
const COUNT_POLL_MS = 30_000;

/** GET /api/alerts/summary, refreshed by each alert of the socket; visitors need polls for hidden ones. */
export function useAlertSummary(): z.infer<typeof alertSummary> | undefined {
  const phase = usePhase();
  const isOperator = useIsOperator();
  return useQuery({
    queryKey: [...ALERTS_KEY, "summary"],
    queryFn: ({ signal }) => call<z.infer<typeof alertSummary>>("/api/alerts/summary", { signal }),
    refetchInterval: phase !== "live" ? POLL_MS : isOperator ? false : COUNT_POLL_MS,
  }).data;
}

/** Number of unresolved critical and warning alerts. */
export function useUnresolvedCount(): number {
  const summary = useAlertSummary();
  return summary === undefined ? 0 : summary.critical + summary.warning;
}

/** GET /api/alerts with filters, refreshed by each alert of the socket. */
export function useAlertList(filters: URLSearchParams): {
  readonly alerts: readonly AlertRecord[] | undefined;
  readonly total: number;
  readonly error: Error | null;
  /** The filters of these alerts; those before while others are read. */
  readonly asked: string;
} {
  const phase = usePhase();
  const search = filters.toString();
  const query = useQuery({
    queryKey: [...ALERTS_KEY, "list", search],
    queryFn: async ({ signal }) => ({
      ...(await call<z.infer<typeof alertList>>(`/api/alerts?${search}`, { signal })),
      asked: search,
    }),
    refetchInterval: phase === "live" ? COUNT_POLL_MS : POLL_MS,
    placeholderData: (before) => before,
  });
  const { alerts, total = 0, asked = "" } = query.data ?? {};
  return { alerts, total, error: query.error, asked };
}

/**
 * The gravest unresolved critical and warning alerts, newest first within a severity; undefined until they
 * are read.
 */
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
