// Joins the parts that watch the cluster: node addresses, polls, and the state store that they write.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { AnswerPool } from "./answer-pool.ts";
import { ClusterStateStore, type NodeNotes } from "./cluster-state-store.ts";
import { NodeAddresses } from "./node-addresses.ts";
import { NodeHttp } from "./node-http.ts";
import { type Lookup, NodeNames } from "./node-names.ts";
import { NodeNetworks } from "./node-networks.ts";
import { Poller } from "./poller.ts";

/** What watching needs. */
export interface ClusterWatchDeps {
  readonly directory: Pick<Directory, "nodes"> & Partial<Pick<Directory, "missingLists">>;
  /** SVC_METRICS_TOKEN (T8). */
  readonly metricsToken: string | undefined;
  /** `-allow_nodes` (M-04). */
  readonly allowNodes: readonly string[];
  /** Maintenance and locks, read after each poll of a node. */
  readonly notesOn?: (nodeId: string) => NodeNotes;
  /** Default: the system's resolver. */
  readonly lookup?: Lookup;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A watched cluster. */
export interface ClusterWatch {
  readonly clusterState: ClusterStateStore;
  readonly poller: Poller;
  readonly addresses: NodeAddresses;
  /** HTTP client for other requests to nodes, under the same rules as polls. */
  readonly http: Pick<NodeHttp, "get">;
  /** Asks a node's service for its health now. True for a node without a FileServer. */
  isHealthy(nodeId: string): Promise<boolean>;
  /**
   * Reads the metadata store for the first time and starts the polls. Resolves after the read or its failure,
   * and never rejects.
   */
  start(): Promise<void>;
  close(): void;
}

const HEALTH_TIMEOUT_MS = 2_000;
const HEALTH_MAX_BYTES = 65_536;

/** Makes the parts; listeners subscribe before `start`. Throws BAD_ARGUMENT for an invalid -allow_nodes. */
export function watchCluster(deps: ClusterWatchDeps): ClusterWatch {
  const { clock, log } = deps;
  const networks = new NodeNetworks(deps.allowNodes);
  const clusterState = new ClusterStateStore({
    clock,
    ...(deps.notesOn === undefined ? {} : { notesOn: deps.notesOn }),
  });
  const addresses = new NodeAddresses({
    directory: deps.directory,
    names: new NodeNames({ clock, networks, ...(deps.lookup === undefined ? {} : { lookup: deps.lookup }) }),
    clock,
    log,
    onList(nodes, givenUp) {
      clusterState.list(nodes, givenUp);
      poller.setNodes(nodes.map((node) => node.id));
    },
  });
  const http = new NodeHttp({ clock, pool: new AnswerPool(), token: deps.metricsToken });
  const poller = new Poller({ clusterState, addresses, http, clock, log });
  return {
    clusterState,
    poller,
    addresses,
    http,
    async isHealthy(nodeId) {
      if (clusterState.node(nodeId) === undefined) return !clusterState.isStarting();
      try {
        await http.get(addresses.target(nodeId), {
          path: "/health",
          timeoutMs: HEALTH_TIMEOUT_MS,
          maxBytes: HEALTH_MAX_BYTES,
        });
        return true;
      } catch {
        return false;
      }
    },
    start: () => addresses.read(),
    close() {
      addresses.close();
      poller.close();
      http.close();
      clusterState.close();
    },
  };
}
