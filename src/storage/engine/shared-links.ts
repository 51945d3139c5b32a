// Links of the roots held here: they come with their root, and are counted by its commits.
import type { ChangeContext } from "#storage/contract/inode.ts";
import type { DownloadCount, DropClaim, LinkStorage, NewLink, StoredLink } from "#storage/contract/links.ts";
import type { LocalLinks } from "#storage/local/link-store.ts";
import type { HeldRoots } from "./held-roots.ts";
import type { SharedReads } from "./shared-reads.ts";

/** The links of held roots; other roots have none here. */
export class SharedLinks implements LinkStorage {
  readonly #links: LocalLinks;
  readonly #reads: SharedReads;
  readonly #roots: Pick<HeldRoots, "of" | "withId">;

  constructor(links: LocalLinks, reads: SharedReads, roots: Pick<HeldRoots, "of" | "withId">) {
    this.#links = links;
    this.#reads = reads;
    this.#roots = roots;
  }

  byId(id: string): StoredLink | undefined {
    const link = this.#reads.few(() => this.#links.byId(id));
    // Rows of a root that others have taken may still be in the cache.
    return link === undefined || this.#roots.of(link.owner) === undefined ? undefined : link;
  }

  ofRoot(owner: string): readonly StoredLink[] {
    return this.#reads.root(owner) === undefined ? [] : this.#reads.few(() => this.#links.ofRoot(owner));
  }

  hasRoot(rootId: string): boolean {
    return this.#reads.few(() => this.#roots.withId(rootId)) !== undefined;
  }

  create(change: ChangeContext & NewLink): Promise<void> {
    return this.#links.create(change);
  }

  revoke(owner: string, id: string): Promise<void> {
    return this.#links.revoke(owner, id);
  }

  countDownload(order: DownloadCount): Promise<void> {
    return this.#links.countDownload(order);
  }

  claimDrop(order: DropClaim): Promise<void> {
    return this.#links.claimDrop(order);
  }

  returnDrop(order: DropClaim): Promise<void> {
    return this.#links.returnDrop(order);
  }
}
