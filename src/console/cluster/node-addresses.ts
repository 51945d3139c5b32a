// Reads the nodes and their addresses from the metadata store every 10 s (spec 4.4, decision D19).

import type { Clock } from "#base/clock.ts";
import { ADDRESS_REREAD_INTERVAL_MS, NODES_MAX } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { metricsPortOf } from "#base/metrics-port.ts";
import { checkedFileServerAddress, checkedNodeId, formatHostPort, parseHostPort } from "#base/node-id.ts";
import type { Directory, NodeRecord } from "#metaserver/directory/directory.ts";
import type { ListedNode } from "./cluster-state-store.ts";
import type { NodeTarget } from "./node-http.ts";
import type { NodeNames } from "./node-names.ts";
import { PollError } from "./poll-error.ts";

/** What reading the addresses needs. */
export interface NodeAddressesDeps {
  readonly directory: Pick<Directory, "nodes"> & Partial<Pick<Directory, "missingLists">>;
  readonly names: NodeNames;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called after each read with all listed nodes and the ids of those that an operator has given up. */
  readonly onList: (nodes: readonly ListedNode[], givenUp: readonly string[]) => void;
}

/** The nodes' addresses. */
export class NodeAddresses {
  readonly #deps: NodeAddressesDeps;
  /** Host and metrics port by node, or why the node has none. */
  readonly #places = new Map<string, { readonly host: string; readonly port: number } | string>();
  readonly #cancel: () => void;
  #isReading = false;
  #isClosed = false;
  #hasFailed = false;
  #readAtWallMs: number | undefined;

  constructor(deps: NodeAddressesDeps) {
    this.#deps = deps;
    this.#cancel = deps.clock.every(ADDRESS_REREAD_INTERVAL_MS, () => void this.read());
  }

  /** Outcome of the last read of the store, and the wall time of the last good one. */
  get store(): {
    readonly state: "unread" | "answering" | "failing";
    readonly readAtWallMs: number | undefined;
  } {
    const isUnread = this.#readAtWallMs === undefined && !this.#hasFailed;
    return {
      state: this.#hasFailed ? "failing" : isUnread ? "unread" : "answering",
      readAtWallMs: this.#readAtWallMs,
    };
  }

  /** Reads the store now, unless a read is in progress. An error changes nothing. */
  async read(): Promise<void> {
    if (this.#isReading || this.#isClosed) return;
    this.#isReading = true;
    try {
      const { directory } = this.#deps;
      const nodes = await directory.nodes();
      this.#take(nodes, (await directory.missingLists?.())?.givenUp ?? []);
      this.#readAtWallMs = this.#deps.clock.wallMs();
      if (this.#hasFailed) this.#deps.log.info("metadata_store_back");
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) this.#deps.log.warn("metadata_store_unreadable", { error: errorText(error) });
      this.#hasFailed = true;
    } finally {
      this.#isReading = false;
    }
  }

  /** The address for polls of a node's metrics. Throws PollError for a missing or forbidden one (M-04). */
  target(nodeId: string): NodeTarget {
    const place = this.#places.get(nodeId);
    if (place === undefined) throw new PollError("the metadata store does not list this node");
    if (typeof place === "string") throw new PollError(place);
    return { ip: this.#deps.names.addressOf(place.host), port: place.port, host: place.host };
  }

  /** Ends the reads. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #take(records: readonly NodeRecord[], givenUp: readonly string[]): void {
    if (this.#isClosed) return;
    this.#places.clear();
    const listed: ListedNode[] = [];
    const hosts = new Set<string>();
    for (const record of records.slice(0, NODES_MAX)) {
      const node = this.#place(record);
      if (node === undefined) continue;
      listed.push(node);
      const place = this.#places.get(node.id);
      if (typeof place === "object") hosts.add(place.host);
    }
    this.#deps.names.keepOnly(hosts);
    // New names are looked up before the node's first poll.
    for (const { id } of listed) this.#prepare(id);
    this.#deps.onList(listed, givenUp);
  }

  #place({ fsId, name, address, softwareVersion }: NodeRecord): ListedNode | undefined {
    try {
      checkedNodeId(fsId);
    } catch {
      this.#deps.log.warn("node_id_invalid", {
        text: "the metadata store lists a node with an id that is none",
      });
      return undefined;
    }
    let metricsUrl = "";
    try {
      const { host, port } = parseHostPort(checkedFileServerAddress(address));
      const place = { host, port: metricsPortOf(port) };
      this.#places.set(fsId, place);
      metricsUrl = `http://${formatHostPort(place)}`;
    } catch (error) {
      this.#places.set(fsId, `its address in the metadata store is none: ${errorText(error)}`);
    }
    return { id: fsId, name, address, metricsUrl, softwareVersion };
  }

  #prepare(nodeId: string): void {
    try {
      this.target(nodeId);
    } catch {
      // The poll reports the error.
    }
  }
}
