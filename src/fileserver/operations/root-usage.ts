// Keeps the usage of every root in memory, updated by each change, so that a scrape reads no table.
import type { Usage } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { RootRecord, Storage } from "#storage/contract/storage.ts";

/** The usage of all roots as of the last acknowledged change. */
export class RootUsage {
  readonly #byOwner = new Map<string, Usage>();
  /** At most one entry for each root. */
  #changed = new Set<string>();
  #hasLost = false;

  constructor(roots: Iterable<RootRecord>) {
    for (const root of roots) this.record(root.owner, root.usage);
  }

  /** The usage of all roots of a store, also of what the store gives back by itself. */
  static of(storage: Pick<Storage, "onFreed" | "root" | "roots">): RootUsage {
    const usage = new RootUsage(storage.roots());
    storage.onFreed((owner) => {
      const record = (): void => {
        const root = storage.root(owner);
        if (root !== undefined && usage.of(owner) !== undefined) usage.record(owner, root.usage);
      };
      // A store that cannot say it now has lost the root, or tells it with the next change.
      againWhenRowsCome(record).catch(() => undefined);
    });
    return usage;
  }

  /** Roots on this node. */
  get count(): number {
    return this.#byOwner.size;
  }

  /** Usage of a root; undefined when it is not on this node. */
  of(owner: string): Usage | undefined {
    return this.#byOwner.get(owner);
  }

  /** Records a root's usage after a change. */
  record(owner: string, usage: Usage): void {
    this.#byOwner.set(owner, usage);
    this.#changed.add(owner);
  }

  /** Forgets a root that has moved to another node. */
  forget(owner: string): void {
    if (!this.#byOwner.delete(owner)) return;
    this.#hasLost = true;
    this.#changed = new Set(this.#byOwner.keys());
  }

  /** True when a root was forgotten since the last call: then all others count as changed. */
  takeLost(): boolean {
    const hasLost = this.#hasLost;
    this.#hasLost = false;
    return hasLost;
  }

  /** Marks a root as changed in something else, such as its quota. */
  touch(owner: string): void {
    if (this.#byOwner.has(owner)) this.#changed.add(owner);
  }

  /** The owners whose roots have changed since the last call; all of them at first. */
  takeChanged(): ReadonlySet<string> {
    const changed = this.#changed;
    this.#changed = new Set();
    return changed;
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
