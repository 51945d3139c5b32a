// The nodes enrolled for actions over SSH, and the enrolment command of the others (spec 4.7, D20).
import { parseHostPort } from "#base/node-id.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { ClusterState } from "#console/cluster/cluster-state.ts";
import { ActionRefusal } from "#console/orchestration/action-refusal.ts";
import type { ActionNodesReply } from "#wire/webapi/action-record.ts";
import type { ConsoleOptions } from "./console-options.ts";
import { metaFlag } from "./meta-flag.ts";

/** Dependencies of enrolment. */
export interface EnrolmentDeps {
  /** The enrolled nodes; rejects when the store does not answer. */
  readonly nodes: () => Promise<readonly SshNode[]>;
  readonly cluster: Pick<ClusterState, "nodes" | "node">;
  /** The metadata store; never its user or password. */
  readonly store: ConsoleOptions["store"];
}

/** State of enrolment. One instance for each console. */
export class Enrolment {
  readonly #deps: EnrolmentDeps;

  constructor(deps: EnrolmentDeps) {
    this.#deps = deps;
  }

  /** Every node of the cluster and every enrolled machine, by id. */
  async list(): Promise<ActionNodesReply> {
    const { nodes, cluster } = this.#deps;
    const enrolled = new Set((await nodes()).map(({ id }) => id));
    const registered = cluster.nodes().map(({ id }) => id);
    const ids = [...new Set([...registered, ...enrolled])].toSorted();
    return {
      nodes: ids.map((id) => ({
        node_id: id,
        node_name: cluster.node(id)?.name ?? id,
        enrolled: enrolled.has(id),
        ...(enrolled.has(id) ? {} : { enrol_command: this.#commandFor(id) }),
      })),
    };
  }

  /** Runs work; a refusal for a node that is not enrolled gets the enrolment command. */
  async explaining<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#explained(error);
    }
  }

  #explained(error: unknown): unknown {
    if (!(error instanceof ActionRefusal) || error.nodeId === undefined) return error;
    const { nodeId } = error;
    const node = this.#deps.cluster.node(nodeId);
    if (node === undefined) return error;
    return new ActionRefusal(
      error.reason,
      `${node.name} is in the cluster, but not enrolled for actions. Where the metadata store can be reached, run: ${this.#commandFor(nodeId)}`,
      { nodeId, cause: error },
    );
  }

  /** The command to type, except for the user, which only the machine's owner knows. */
  #commandFor(nodeId: string): string {
    const { store, cluster } = this.#deps;
    return `grove node add ${nodeId} USER@${hostOf(cluster.node(nodeId)?.address)} ${metaFlag(store)}`;
  }
}

function hostOf(address: string | undefined): string {
  try {
    const { host } = parseHostPort(address ?? "");
    return host.includes(":") ? `[${host}]` : host;
  } catch {
    return "HOST";
  }
}
