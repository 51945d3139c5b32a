// The cluster whose FileServers use the engine: the first one that has registered with it, and no other.
import { GroveError } from "#base/errors.ts";
import type { EngineRows } from "./engine-rows.ts";

/** What this process knows of it. */
export class EngineCluster {
  readonly #rows: Pick<EngineRows, "cluster" | "keepCluster">;
  #isOwn = false;

  private constructor(rows: Pick<EngineRows, "cluster" | "keepCluster">) {
    this.#rows = rows;
  }

  /**
   * For a node of a cluster, for one that has yet to register ("") or one that stands alone (undefined). Throws
   * CLUSTER_MISMATCH for an engine of another cluster.
   */
  static async open(
    rows: Pick<EngineRows, "cluster" | "keepCluster">,
    clusterId: string | undefined,
  ): Promise<EngineCluster> {
    const cluster = new EngineCluster(rows);
    if (clusterId === undefined) await cluster.#requireNone();
    else if (clusterId !== "") await cluster.join(clusterId);
    return cluster;
  }

  /** True once it is certain that other processes' roots are of this cluster's people. */
  get isOwn(): boolean {
    return this.#isOwn;
  }

  /** Throws CLUSTER_MISMATCH for another cluster than the engine's. */
  async join(clusterId: string): Promise<void> {
    const kept = await this.#rows.keepCluster(clusterId);
    if (kept !== clusterId) throw mismatch(kept, `this node is of ${clusterId}`);
    this.#isOwn = true;
  }

  async #requireNone(): Promise<void> {
    const kept = await this.#rows.cluster();
    if (kept !== undefined) throw mismatch(kept, "this node has no -metaserver");
    this.#isOwn = true;
  }
}

function mismatch(kept: string, node: string): GroveError {
  return new GroveError(
    "CLUSTER_MISMATCH",
    `the shared engine's database belongs to the cluster ${kept}, and ${node}: name a database for this cluster by -engine_file`,
  );
}
