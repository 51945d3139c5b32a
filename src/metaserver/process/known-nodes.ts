// Compares the store's nodes with those this host remembers: no user gets a second root after a loss (D19).
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import type { KnownNodesFile } from "./known-nodes-file.ts";

/** Interval in which a MetaServer writes down the nodes, for a loss of the store. */
export const KNOWN_NODES_INTERVAL_MS = 60_000;

/** Dependencies of the comparison. */
export interface KnownNodesDeps {
  readonly directory: Pick<Directory, "nodes" | "missingLists" | "awaitNodes">;
  readonly file: KnownNodesFile;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The nodes that this host remembers. */
export class KnownNodes {
  readonly #deps: KnownNodesDeps;
  readonly #stop: () => void;
  #told = "";

  constructor(deps: KnownNodesDeps) {
    this.#deps = deps;
    this.#stop = deps.clock.every(KNOWN_NODES_INTERVAL_MS, () => void this.compare());
  }

  /** Has the store wait for the lists of nodes it lacks, and remembers those it has. Never rejects. */
  async compare(): Promise<void> {
    const { directory, file, log } = this.#deps;
    try {
      const [nodes, { awaited, givenUp }] = await Promise.all([directory.nodes(), directory.missingLists()]);
      const there = new Set([...nodes.map(({ fsId }) => fsId), ...awaited, ...givenUp]);
      const lost = file.nodes.filter((fsId) => !there.has(fsId));
      if (lost.length > 0) await directory.awaitNodes(lost);
      const givenUpNow = new Set(givenUp);
      await file.remember([...there, ...lost].filter((fsId) => !givenUpNow.has(fsId)));
      this.#tell([...awaited, ...lost]);
    } catch (error) {
      log.warn("known_nodes_not_kept", { error: errorText(error) });
    }
  }

  /** Remembers a node that has registered; resolves when that is on stable storage. */
  async registered(fsId: string): Promise<void> {
    const { file } = this.#deps;
    if (!file.has(fsId)) await file.remember([...file.nodes, fsId]);
  }

  /** Stops comparing. */
  stop(): void {
    this.#stop();
  }

  /** Logs each change of the awaited nodes once. */
  #tell(awaited: readonly string[]): void {
    const text = awaited.toSorted().join();
    if (text === this.#told) return;
    this.#told = text;
    if (text === "") this.#deps.log.info("roots_listed");
    else {
      const todo = "new users wait; for a node that does not come back: grove node lost ID";
      this.#deps.log.warn("roots_awaited", { nodes: text, todo });
    }
  }
}
