// What the pages know of the cluster: read once, then kept fresh by the socket, or by polling while there is none.
import { replaceEqualDeep, useQuery } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import type { OperatorCluster, PublicCluster } from "#wire/webapi/cluster.ts";
import type { LiveNode } from "../words/live-node.ts";
import { call } from "./api.ts";
import { Connection, type ConnectionState, type Phase } from "./connection.ts";
import { queryClient } from "./query-client.ts";
import { checkSession, forgetSession, noteExpiry, watchSession } from "./session.ts";

/** GET /api/cluster for whoever asks. */
export type Cluster = Omit<
  PublicCluster | OperatorCluster,
  "nodes" | "users" | "total_users" | "redacted"
> & {
  readonly redacted: boolean;
  readonly nodes: readonly LiveNode[];
  readonly total_users: number;
};

/** Name of the cluster in the cache. */
export const CLUSTER_KEY = ["cluster"] as const;
/** Name of every list of alerts in the cache. */
export const ALERTS_KEY = ["alerts"] as const;

const POLL_MS = 5_000;
/** Figures older than this are marked as stale. */
const STALE_AFTER_MS = 15_000;

const scheme = location.protocol === "https:" ? "wss" : "ws";

/** The page's one connection. */
export const connection = new Connection(`${scheme}://${location.host}/ws/cluster`, {
  snapshot(data, wallSeconds) {
    queryClient.setQueryData<Cluster>(CLUSTER_KEY, (known) =>
      known === undefined
        ? known
        : {
            ...known,
            nodes: data.nodes,
            cluster: data.cluster as Cluster["cluster"],
            generated_at: Math.floor(wallSeconds),
          },
    );
    for (const listener of snapshotListeners) listener(data.nodes, wallSeconds);
  },
  alert() {
    void queryClient.invalidateQueries({ queryKey: ALERTS_KEY });
  },
  reconnected() {
    void checkSession().then(() => queryClient.invalidateQueries());
  },
  sessionExpiring: noteExpiry,
  sessionEnded: forgetSession,
});

watchSession(() => connection.restart());

type SnapshotListener = (nodes: readonly LiveNode[], wallSeconds: number) => void;
const snapshotListeners = new Set<SnapshotListener>();

/** Calls back with every snapshot; returns how to end it. */
export function onSnapshot(listener: SnapshotListener): () => void {
  snapshotListeners.add(listener);
  return () => snapshotListeners.delete(listener);
}

/** What the connection is doing. */
export function useConnection(): ConnectionState {
  return useSyncExternalStore(connection.subscribe, connection.state);
}

/** What the connection is doing, without how old its last snapshot is: told anew only when it turns. */
export function usePhase(): Phase {
  return useSyncExternalStore(connection.subscribe, () => connection.state().phase);
}

const CLUSTER_QUERY = {
  queryKey: CLUSTER_KEY,
  queryFn: ({ signal }: { readonly signal: AbortSignal }) => call<Cluster>("/api/cluster", { signal }),
  staleTime: Number.POSITIVE_INFINITY,
  // With every snapshot nearly every node is another: to compare all their figures would take longer than to draw those in sight.
  structuralSharing: (before: unknown, after: unknown): unknown =>
    isCluster(after) ? after : replaceEqualDeep(before, after),
};

function isCluster(data: unknown): boolean {
  return typeof data === "object" && data !== null && "nodes" in data && "cluster" in data;
}

/** A node to be chosen: its id and its name, as lists of choices want them. */
export interface NodeChoice {
  readonly value: string;
  readonly label: string;
  /** An action holds it. */
  readonly isHeld: boolean;
}

/** The nodes to choose from; the same array until one comes, goes, is renamed or held. Undefined until they are read. */
export function useNodeChoices(): readonly NodeChoice[] | undefined {
  return useQuery({ ...CLUSTER_QUERY, select: choicesOf }).data;
}

function choicesOf({ nodes }: Cluster): readonly NodeChoice[] {
  return nodes.map(({ id, name, locked_by: lockedBy }) => ({
    value: id,
    label: name,
    isHeld: lockedBy !== undefined,
  }));
}

/** The cluster, with whether its figures are stale, and why there are none. */
export function useCluster(): {
  readonly cluster: Cluster | undefined;
  readonly isStale: boolean;
  readonly error: Error | null;
} {
  const phase = usePhase();
  const query = useQuery({
    ...CLUSTER_QUERY,
    // Without a socket the pages poll.
    // A socket freshens what is known; what was never read has to be asked for again.
    refetchInterval: ({ state }) => (phase !== "live" || state.data === undefined ? POLL_MS : false),
  });
  return { cluster: query.data, isStale: useIsOld(query.dataUpdatedAt), error: query.error };
}

/** Whether a moment of Date.now() is so long ago that its figures count as stale; told when it turns, not every second. */
function useIsOld(sinceMs: number): boolean {
  const [oldSince, setOldSince] = useState(0);
  useEffect(() => {
    if (sinceMs === 0) return;
    const timer = setTimeout(() => setOldSince(sinceMs), Math.max(0, sinceMs + STALE_AFTER_MS - Date.now()));
    return () => clearTimeout(timer);
  }, [sinceMs]);
  return sinceMs !== 0 && oldSince === sinceMs;
}

let nowMs = Date.now();
let ticking: ReturnType<typeof setInterval> | undefined;
const clocks = new Set<() => void>();

function tick(): void {
  if (document.visibilityState !== "visible") return;
  nowMs = Date.now();
  for (const listener of clocks) listener();
}

function watchClock(listener: () => void): () => void {
  clocks.add(listener);
  if (ticking === undefined) {
    nowMs = Date.now();
    ticking = setInterval(tick, 1_000);
  }
  return () => {
    clocks.delete(listener);
    if (clocks.size > 0) return;
    clearInterval(ticking);
    ticking = undefined;
  };
}

/** Date.now(), told anew every second while the page is visible; one timer for all that ask. */
export function useNowMs(): number {
  return useSyncExternalStore(watchClock, () => nowMs);
}
