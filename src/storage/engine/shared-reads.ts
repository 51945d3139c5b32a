// Synchronous reads of the roots held here; what is missing is fetched, and the caller reads again.
import { isGroveError } from "#base/errors.ts";
import { type InodeId, rootNumberOf } from "#storage/contract/inode.ts";
import { RowsToCome } from "#storage/contract/rows-to-come.ts";
import type {
  GrantChange,
  OwnShare,
  SharedPath,
  ShareListPage,
  ShareListPlace,
  ShareStorage,
  Sharing,
  UserPaths,
} from "#storage/contract/storage.ts";
import type { LocalShares } from "#storage/local/share-store.ts";
import type { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import { type Fact, type RowFacts, RowsMissing } from "#storage/shared/row-facts.ts";
import type { SharedWriter } from "#storage/shared/shared-writer.ts";
import { type HeldRoots, type OwnRoot, withoutLease } from "./held-roots.ts";

/** Dependencies of reads. */
export interface SharedReadsDeps {
  readonly reader: SnapshotReader;
  /** What the reader's rows are known to be whole for. */
  readonly facts: RowFacts;
  readonly writer: Pick<SharedWriter, "know">;
  readonly roots: Pick<HeldRoots, "all" | "mayRead" | "of" | "withNumber">;
}

/** All that decides what a read may say. */
export class SharedReads {
  readonly #deps: SharedReadsDeps;
  /** Set while not all held roots are in the cache. */
  #loading: Promise<void> | undefined;
  #isWhole = true;
  #forgets = 0;

  constructor(deps: SharedReadsDeps) {
    this.#deps = deps;
  }

  /** All rows were forgotten: the held roots are fetched before anything is answered again. */
  forgot(): void {
    this.#isWhole = false;
    this.#forgets++;
  }

  /** The held root of an owner; undefined for one that is elsewhere or nowhere. */
  root(owner: string): OwnRoot | undefined {
    this.#requireWhole();
    return this.#deps.roots.of(owner);
  }

  /** The held root of an inode. */
  rootOf(id: InodeId): OwnRoot | undefined {
    this.#requireWhole();
    return this.#deps.roots.withNumber(rootNumberOf(id));
  }

  /**
   * Reads rows of a held root. Throws RowsToCome for those that are not here, and fetches a path as a whole
   * unless all but its last name is known.
   */
  of<T>({ owner }: OwnRoot, read: (reader: SnapshotReader) => T, path?: readonly string[]): T {
    const { reader, facts, writer } = this.#deps;
    facts.begin();
    try {
      return read(reader);
    } catch (error) {
      if (!(error instanceof RowsMissing)) throw error;
      const whole: Fact | undefined = path === undefined ? undefined : { kind: "path", owner, names: path };
      const isLast = error.fact.kind === "name" && error.fact.name === path?.at(-1);
      const fact = whole === undefined || isLast || facts.knows(whole) ? error.fact : whole;
      throw new RowsToCome(writer.know(owner, fact));
    }
  }

  /** Reads what is few and whole: roots, grants, uploads. */
  few<T>(read: (reader: SnapshotReader) => T): T {
    this.#requireWhole();
    this.#deps.facts.begin();
    return read(this.#deps.reader);
  }

  /** Refuses without a lease, and while held roots are being fetched again. */
  #requireWhole(): void {
    const { roots } = this.#deps;
    if (!roots.mayRead) throw withoutLease();
    if (this.#isWhole) return;
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    throw new RowsToCome(this.#loading);
  }

  async #load(): Promise<void> {
    const { roots, writer } = this.#deps;
    const forgets = this.#forgets;
    await Promise.all([...roots.all()].map(({ owner }) => writer.know(owner))).catch((error: unknown) => {
      // One of them has another name, or another home, of which this process is about to hear.
      throw isGroveError(error, "NO_SUCH_PATH") ? withoutLease() : error;
    });
    // Until then every read waits: what is few would seem to be none.
    this.#isWhole = forgets === this.#forgets;
  }
}

/** The shares of held roots; other roots share nothing here. */
export class SharedShares implements ShareStorage {
  readonly #shares: LocalShares;
  readonly #reads: SharedReads;

  constructor(shares: LocalShares, reads: SharedReads) {
    this.#shares = shares;
    this.#reads = reads;
  }

  pathsOf(owner: string, username: string): UserPaths {
    const root = this.#reads.root(owner);
    if (root === undefined) return { granted: [], excluded: [] };
    return this.#reads.of(root, () => this.#shares.pathsOf(owner, username));
  }

  usersOf(inodeId: InodeId): readonly string[] | undefined {
    const root = this.#reads.rootOf(inodeId);
    return root && this.#reads.of(root, () => this.#shares.usersOf(inodeId));
  }

  listed(owner: string, place: ShareListPlace): ShareListPage {
    const root = this.#reads.root(owner);
    if (root === undefined) return { shares: [], isLast: true };
    return this.#reads.of(root, () => this.#shares.listed(owner, place));
  }

  at(inodeIds: readonly InodeId[]): OwnShare[] {
    return this.#reads.few(() => this.#shares.at(inodeIds));
  }

  ofRoot(owner: string): readonly SharedPath[] {
    return this.#reads.few(() => this.#shares.ofRoot(owner));
  }

  all(): ReadonlyMap<string, readonly SharedPath[]> {
    return this.#reads.few(() => this.#shares.all());
  }

  onChange(callback: (owners: readonly string[]) => void): void {
    this.#shares.onChange(callback);
  }

  grant(change: GrantChange): Promise<Sharing> {
    return this.#shares.grant(change);
  }

  revoke(change: GrantChange): Promise<Sharing> {
    return this.#shares.revoke(change);
  }
}
