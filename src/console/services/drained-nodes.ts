// The nodes that are taken out of service, as the metadata store has them: read now and then, and told on change.
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { DirectoryReader } from "#metaserver/directory/directory.ts";

/** How often they are read. */
const DRAINED_INTERVAL_MS = 5_000;

/** Dependencies of the list. */
export interface DrainedNodesDeps {
  readonly directory: Pick<DirectoryReader, "drainedNodes">;
  readonly clock: Pick<Clock, "every">;
  readonly log: Logger;
}

/** The list. One instance for each console. */
export class DrainedNodes {
  readonly #deps: DrainedNodesDeps;
  readonly #changeListeners = new Set<(nodeId: string) => void>();
  #ids: ReadonlySet<string> = new Set();
  readonly #stop: () => void;

  constructor(deps: DrainedNodesDeps) {
    this.#deps = deps;
    this.#stop = deps.clock.every(DRAINED_INTERVAL_MS, () => void this.#look());
    void this.#look();
  }

  /** True for a node that gets no roots, by the last reading. */
  has(nodeId: string): boolean {
    return this.#ids.has(nodeId);
  }

  /** Reads them now. Throws the store's errors. */
  async read(): Promise<ReadonlySet<string>> {
    const before = this.#ids;
    const ids = new Set(await this.#deps.directory.drainedNodes());
    this.#ids = ids;
    for (const nodeId of before.symmetricDifference(ids)) {
      for (const listener of this.#changeListeners) listener(nodeId);
    }
    return ids;
  }

  /** Calls with the id of each node whose state has changed; the returned function ends that. */
  onChange(listener: (nodeId: string) => void): () => void {
    this.#changeListeners.add(listener);
    return () => void this.#changeListeners.delete(listener);
  }

  /** Ends the readings. */
  close(): void {
    this.#stop();
  }

  async #look(): Promise<void> {
    try {
      await this.read();
    } catch (error) {
      this.#deps.log.debug("drained_nodes_not_read", { error: errorText(error) });
    }
  }
}
