// Nodes that the cluster has not had for an hour: nothing tells of them any more, so what stands about them ends.
import type { Moment } from "#console/alerts/condition.ts";
import type { ClusterState } from "#console/cluster/cluster-state.ts";

/** Time after which the alerts and notifications of a removed node end. */
export const NODE_FORGOTTEN_MS: number = 3_600_000;

/** Remembers since when nodes are missing. */
export class GoneNodes {
  readonly #cluster: Pick<ClusterState, "nodes" | "node" | "isStarting">;
  /** On the steady clock; only of nodes of the last question. */
  readonly #missingSinceMs = new Map<string, number>();

  constructor(cluster: Pick<ClusterState, "nodes" | "node" | "isStarting">) {
    this.#cluster = cluster;
  }

  /**
   * Those of the nodes that are unknown for an hour. With no known node at all none is, since the metadata
   * store may be down.
   */
  of(nodeIds: ReadonlySet<string>, { steadyMs }: Moment): ReadonlySet<string> {
    const gone = new Set<string>();
    if (this.#cluster.isStarting() || this.#cluster.nodes().length === 0) return gone;
    for (const id of this.#missingSinceMs.keys()) if (!nodeIds.has(id)) this.#missingSinceMs.delete(id);
    for (const id of nodeIds) {
      if (this.#cluster.node(id) !== undefined) {
        this.#missingSinceMs.delete(id);
        continue;
      }
      const sinceMs = this.#missingSinceMs.get(id) ?? steadyMs;
      this.#missingSinceMs.set(id, sinceMs);
      if (steadyMs - sinceMs >= NODE_FORGOTTEN_MS) gone.add(id);
    }
    return gone;
  }
}
