// The cluster's state: read once, then updated by the socket, or polled without one.
import { replaceEqualDeep, useQuery } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import type { OperatorCluster, PublicCluster } from "#wire/webapi/cluster.ts";
import type { LiveNode } from "../words/live-node.ts";
import { call } from "./api.ts";
import { Connection, type ConnectionState, type Phase } from "./connection.ts";
import { queryClient } from "./query-client.ts";
import { checkSession, forgetSession, noteExpiry, watchSession } from "./session.ts";
import { renewTopics } from "./topic-socket.ts";

/** The answer of GET /api/cluster, with an operator's fields optional. */
export type Cluster = Omit<
  PublicCluster | OperatorCluster,
  "nodes" | "users" | "total_users" | "redacted"
> & {
  readonly redacted: boolean;
  readonly nodes: readonly LiveNode[];
  readonly total_users: number;
};

/** Key of the cluster in the cache. */
export const CLUSTER_KEY = ["cluster"] as const;
/** Key of all lists of alerts in the cache. */
export const ALERTS_KEY = ["alerts"] as const;

const POLL_MS = 5_000;
/** Age at which figures are marked as stale. */
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
    renewTopics();
  },
  sessionExpiring: noteExpiry,
  sessionEnded: forgetSession,
});

watchSession(() => connection.restart());

type SnapshotListener = (nodes: readonly LiveNode[], wallSeconds: number) => void;
const snapshotListeners = new Set<SnapshotListener>();

/** Calls back with every snapshot; the returned function ends that. */
export function onSnapshot(listener: SnapshotListener): () => void {
  snapshotListeners.add(listener);
  return () => snapshotListeners.delete(listener);
}

/** State of the connection. */
export function useConnection(): ConnectionState {
  return useSyncExternalStore(connection.subscribe, connection.state);
}

/** Phase of the connection, which renders on changes only. */
export function usePhase(): Phase {
  return useSyncExternalStore(connection.subscribe, () => connection.state().phase);
}

const CLUSTER_QUERY = {
  queryKey: CLUSTER_KEY,
  queryFn: ({ signal }: { readonly signal: AbortSignal }) => call<Cluster>("/api/cluster", { signal }),
  staleTime: Number.POSITIVE_INFINITY,
  // Every snapshot changes nearly every node: comparing all figures would take longer than drawing the
  // visible ones.
  structuralSharing: (before: unknown, after: unknown): unknown =>
    isCluster(after) ? after : replaceEqualDeep(before, after),
};

function isCluster(data: unknown): boolean {
  return typeof data === "object" && data !== null && "nodes" in data && "cluster" in data;
}

/** A node in a list of choices: its id and its name. */
export interface NodeChoice {
  readonly value: string;
  readonly label: string;
  /** An action has locked it. */
  readonly isHeld: boolean;
}

/**
 * The nodes to choose from; a stable array until one is added, removed, renamed or locked. Undefined until
 * they are read.
 */
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

/** The cluster, whether its figures are stale, and the error without one. */
export function useCluster(): {
  readonly cluster: Cluster | undefined;
  readonly isStale: boolean;
  readonly error: Error | null;
} {
  const phase = usePhase();
  const query = useQuery({
    ...CLUSTER_QUERY,
    // Polls without a socket, and until the first answer: a socket only updates earlier data.
    refetchInterval: ({ state }) => (phase !== "live" || state.data === undefined ? POLL_MS : false),
  });
  return { cluster: query.data, isStale: useIsOld(query.dataUpdatedAt), error: query.error };
}

/** Whether a moment of Date.now() is old enough for stale figures; renders on the change only. */
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

/** Date.now(), updated every second while the page is visible; one timer for all users. */
export function useNowMs(): number {
  return useSyncExternalStore(watchClock, () => nowMs);
}
