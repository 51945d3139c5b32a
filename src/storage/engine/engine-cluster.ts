// The cluster whose FileServers use the engine: the first one that has registered with it, and no other.
import { GroveError } from "#base/errors.ts";
import type { EngineRows } from "./engine-rows.ts";

/** What this process knows of it. */
export class EngineCluster {
  readonly #rows: Pick<EngineRows, "keepCluster">;
  #mayTake = false;

  private constructor(rows: Pick<EngineRows, "keepCluster">) {
    this.#rows = rows;
  }

  /**
   * For a node of a cluster, for one that has yet to register ("") or for a process that knows no cluster
   * (undefined), which no cluster refuses. Throws CLUSTER_MISMATCH for an engine of another cluster.
   */
  static async open(
    rows: Pick<EngineRows, "keepCluster">,
    clusterId: string | undefined,
  ): Promise<EngineCluster> {
    const cluster = new EngineCluster(rows);
    if (clusterId === undefined) cluster.#mayTake = true;
    else if (clusterId !== "") await cluster.join(clusterId);
    return cluster;
  }

  /** False while roots of other processes may be those of another cluster's people. */
  get mayTake(): boolean {
    return this.#mayTake;
  }

  /** Throws CLUSTER_MISMATCH for another cluster than the engine's. */
  async join(clusterId: string): Promise<void> {
    const kept = await this.#rows.keepCluster(clusterId);
    if (kept !== clusterId) throw mismatch(kept, clusterId);
    this.#mayTake = true;
  }
}

function mismatch(kept: string, own: string): GroveError {
  return new GroveError(
    "CLUSTER_MISMATCH",
    `the shared engine's database belongs to the cluster ${kept}, and this node is of ${own}: ` +
      "name this cluster's database by -engine_file. To give the database to this cluster, " +
      "stop all its FileServers and run grove fsck -list -restored",
  );
}
