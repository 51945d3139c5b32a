// The last hour of a node or of the cluster: read once, then continued by snapshots.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import type { HistoryColumn, HistoryReply } from "#wire/webapi/performance.ts";
import { call } from "./api.ts";
import { onSnapshot, usePhase } from "./cluster.ts";
import { continued } from "./continued-history.ts";
import { queryClient } from "./query-client.ts";

const POLL_MS = 15_000;

/** GET /api/history/{id}, for a node's id or "cluster". */
export function useHistory(id: string): {
  readonly history: HistoryReply | undefined;
  readonly error: Error | null;
} {
  const phase = usePhase();
  const isCluster = id === "cluster";
  const query = useQuery({
    queryKey: ["history", id],
    queryFn: ({ signal }) => call<HistoryReply>(`/api/history/${encodeURIComponent(id)}`, { signal }),
    staleTime: 60_000,
    // Snapshots have no sums, so the cluster's history is polled.
    refetchInterval: phase === "live" && !isCluster ? false : POLL_MS,
  });
  useEffect(() => {
    if (isCluster) return;
    return onSnapshot((nodes, wallSeconds) => {
      const node = nodes.find((candidate) => candidate.id === id);
      if (node === undefined) return;
      queryClient.setQueryData<HistoryReply>(["history", id], (known) =>
        continued(known, node, Math.floor(wallSeconds)),
      );
    });
  }, [id, isCluster]);
  return { history: query.data, error: query.error };
}

/** A planned line of a chart: its column, name, colour, and whether it is dashed. */
export type PlannedLine = readonly [column: HistoryColumn, label: string, color: string, isDashed?: boolean];

/** A line of a chart with its figures. */
export interface HistoryLine {
  readonly label: string;
  readonly color: string;
  readonly values: readonly (number | null)[];
  readonly isDashed?: true;
}

/** The planned lines with a history's figures. */
export function linesOf(planned: readonly PlannedLine[], history: HistoryReply): HistoryLine[] {
  return planned.map(([column, label, color, isDashed]) => ({
    label,
    color,
    values: columnOf(history, column),
    ...(isDashed === true ? { isDashed } : {}),
  }));
}

/** One column of a history with its times; null is a gap. */
export function columnOf(history: HistoryReply, column: HistoryColumn): (number | null)[] {
  const index = history.columns.indexOf(column);
  return history.points.map((point) => point[index] ?? null);
}
