// Locks and properties of the roots held here: rows that are missing are fetched before they are read.
import type { ChangeContext, InodeId } from "#storage/contract/inode.ts";
import type { HeldLock, LockStorage } from "#storage/contract/locks.ts";
import type { PropertyOutcome, PropertyStorage, StoredProperty } from "#storage/contract/properties.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { LocalLocks } from "#storage/local/lock-store.ts";
import type { LocalProperties } from "#storage/local/property-store.ts";
import type { SharedReads } from "./shared-reads.ts";

/** The locks of held roots, which come with their root; other roots have none here. */
export class SharedLocks implements LockStorage {
  readonly #locks: LocalLocks;
  readonly #reads: SharedReads;

  constructor(locks: LocalLocks, reads: SharedReads) {
    this.#locks = locks;
    this.#reads = reads;
  }

  ofRoot(owner: string): readonly HeldLock[] {
    const root = this.#reads.root(owner);
    return root === undefined ? [] : this.#reads.of(root, () => this.#locks.ofRoot(owner));
  }

  namesBelow(inodeId: InodeId, above: InodeId): readonly string[] | undefined {
    const root = this.#reads.rootOf(inodeId);
    return root && this.#reads.of(root, () => this.#locks.namesBelow(inodeId, above));
  }

  take(change: ChangeContext & Omit<HeldLock, "username">): Promise<void> {
    return this.#locks.take(change);
  }

  refresh(owner: string, token: string, expiresAtMs: number): Promise<void> {
    return this.#locks.refresh(owner, token, expiresAtMs);
  }

  end(owner: string, token: string): Promise<void> {
    return this.#locks.end(owner, token);
  }
}

/** The properties of held roots; an inode of another root has none here. */
export class SharedProperties implements PropertyStorage {
  readonly #properties: LocalProperties;
  readonly #reads: SharedReads;

  constructor(properties: LocalProperties, reads: SharedReads) {
    this.#properties = properties;
    this.#reads = reads;
  }

  of(inodeId: InodeId): readonly StoredProperty[] {
    const root = this.#reads.rootOf(inodeId);
    return root === undefined ? [] : this.#reads.of(root, () => this.#properties.of(inodeId));
  }

  bytesIn(owner: string): number {
    const root = this.#reads.root(owner);
    return root === undefined ? 0 : this.#reads.of(root, () => this.#properties.bytesIn(owner));
  }

  /** Those of the whole root, which is enough to claim: the tree below need not be fetched for it. */
  copiedBytes(owner: string): Promise<number> {
    return againWhenRowsCome(() => this.bytesIn(owner));
  }

  change(change: Parameters<PropertyStorage["change"]>[0]): Promise<PropertyOutcome> {
    return this.#properties.change(change);
  }
}
