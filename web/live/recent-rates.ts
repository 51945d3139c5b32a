// Each node's throughput in the last minutes, from snapshots since the page opened, for sparklines.
import { useSyncExternalStore } from "react";
import type { LiveNode } from "../words/live-node.ts";
import { onSnapshot } from "./cluster.ts";
import { columnOf, useHistory } from "./history.ts";

/** Snapshots of five minutes. */
const KEPT = 60;

let recent: ReadonlyMap<string, readonly (number | null)[]> = new Map();
const listeners = new Set<() => void>();

/** Key of the sum over all nodes; no node's id has a star. */
const ALL_NODES = "*";

onSnapshot((nodes) => {
  const next = new Map<string, readonly (number | null)[]>();
  const add = (id: string, value: number | null): void => {
    next.set(id, [...(recent.get(id) ?? []).slice(1 - KEPT), value]);
  };
  for (const node of nodes) add(node.id, throughput(node));
  add(
    ALL_NODES,
    nodes.reduce((sum, node) => sum + (throughput(node) ?? 0), 0),
  );
  recent = next;
  for (const listener of listeners) listener();
});

function throughput(node: LiveNode): number | null {
  if (node.stale || (node.write_mbps === null && node.read_mbps === null)) return null;
  return (node.write_mbps ?? 0) + (node.read_mbps ?? 0);
}

const NONE: readonly (number | null)[] = [];

function watch(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Throughput of all nodes in MB/s over the last five minutes, oldest first; the history has the part before
 * this page.
 */
export function useClusterRates(): readonly (number | null)[] {
  const since = useRecentRates(ALL_NODES);
  const { history } = useHistory("cluster");
  if (since.length >= KEPT || history === undefined) return since;
  const write = columnOf(history, "write_mbps");
  const read = columnOf(history, "read_mbps");
  const before = write.map((value, index) =>
    value === null && read[index] === null ? null : (value ?? 0) + (read[index] ?? 0),
  );
  // The history includes the snapshots, so its end suffices.
  return before.slice(-KEPT);
}

/** Throughput of a node in MB/s over the last five minutes, oldest first. */
export function useRecentRates(id: string): readonly (number | null)[] {
  return useSyncExternalStore(watch, () => recent.get(id) ?? NONE);
}
