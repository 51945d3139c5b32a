// Reads of cached rows: what is missing is fetched first, and then the whole read runs on one committed
// version.
import { GroveError } from "#base/errors.ts";
import { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import type { RowCache } from "./row-cache.ts";
import { type Fact, RowsMissing } from "./row-facts.ts";
import type { SharedWriter } from "./shared-writer.ts";

/** Fetches for one read: each asks for more than the one before, down a path or along a list. */
const FETCHES_MAX = 4_096;

/** Dependencies of a reader. */
export interface SharedReaderDeps {
  readonly cache: RowCache;
  readonly writer: Pick<SharedWriter, "know">;
  /** True while the process's lease lets it answer from its rows. */
  readonly mayRead: () => boolean;
}

/** Owns a connection that reads. */
export class SharedReader {
  readonly #deps: SharedReaderDeps;
  readonly #reader: SnapshotReader;
  readonly #beginRead: () => void;

  constructor(deps: SharedReaderDeps) {
    this.#deps = deps;
    const { db, facts } = deps.cache.openReader();
    this.#beginRead = () => facts.begin();
    this.#reader = new SnapshotReader(db, (error) => {
      throw error;
    });
  }

  /**
   * Runs a synchronous read of a root, again after each fetch until nothing is missing. All that it decides
   * rests on one version then. A path that it follows is fetched as a whole. Throws its refusal, NO_SUCH_PATH
   * and WRONG_NODE for a root that is not here, and STORE_UNAVAILABLE without a lease.
   */
  async read<T>(
    owner: string,
    read: (reader: SnapshotReader) => T,
    names: readonly string[] = [],
  ): Promise<T> {
    let path: Fact | undefined = { kind: "path", owner, names };
    await this.#deps.writer.know(owner);
    for (let fetches = 0; fetches < FETCHES_MAX; fetches++) {
      if (!this.#deps.mayRead()) {
        throw new GroveError("STORE_UNAVAILABLE", "the shared database does not answer; try again");
      }
      this.#reader.renew();
      this.#beginRead();
      try {
        // The root may have been forgotten since it was known.
        if (this.#reader.root(owner) !== undefined) return read(this.#reader);
      } catch (error) {
        if (!(error instanceof RowsMissing)) throw error;
        await this.#deps.writer.know(owner, path ?? error.fact);
        path = undefined;
      }
    }
    throw new GroveError("STORE_UNAVAILABLE", "what a read needs does not come");
  }

  close(): void {
    this.#reader.close();
  }
}
