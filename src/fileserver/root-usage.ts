// What every root of this node holds, kept in memory and moved on by each change, so that a scrape reads no table.
import type { RootRecord, Usage } from "#storage/storage.ts";

/** The usage of all roots, as of the last change that was acknowledged. */
export class RootUsage {
  readonly #byOwner = new Map<string, Usage>();

  constructor(roots: Iterable<RootRecord>) {
    for (const root of roots) this.#byOwner.set(root.owner, root.usage);
  }

  /** Roots on this node. */
  get count(): number {
    return this.#byOwner.size;
  }

  /** What a root holds; undefined when it is not on this node. */
  of(owner: string): Usage | undefined {
    return this.#byOwner.get(owner);
  }

  /** Takes note of a root's usage after a change. */
  record(owner: string, usage: Usage): void {
    this.#byOwner.set(owner, usage);
  }

  /** Every root's owner. */
  owners(): IterableIterator<string> {
    return this.#byOwner.keys();
  }

  /** Every root's owner and usage. */
  entries(): IterableIterator<[owner: string, usage: Usage]> {
    return this.#byOwner.entries();
  }
}
