// Grants and exclusions on the main thread, read without their inodes: a user's access, and a root's shares.
import { GRANTS_PER_ROOT } from "#base/limits.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type {
  GrantChange,
  ListedShare,
  OwnShare,
  SharedPath,
  ShareListPage,
  ShareListPlace,
  ShareStorage,
  Sharing,
  UserPaths,
} from "#storage/contract/storage.ts";
import { FLAG_HAS_GRANTS } from "#storage/metadata/schema.ts";
import { type ShareRow, usersLetIn } from "#storage/metadata/share-resolution.ts";
import { atOrBelow } from "#storage/metadata/share-rows.ts";
import type { SnapshotTables } from "#storage/metadata/snapshot-reader.ts";
import { CHAIN_MAX } from "#storage/metadata/unit-of-work.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

/** Bytes of paths on one page of a user's shares, so that stock clients can take it. */
const SHARE_PAGE_BYTES = 1_000_000;
/** Pairs of owner and user whose shares a node's reads keep in memory; beyond them all are read again. */
export const SHARED_PATHS_CACHED = 8_192;

/** See ShareStorage. */
export class LocalShares implements ShareStorage {
  readonly #queue: Pick<WriteQueue, "submit">;
  readonly #nowMs: () => number;
  readonly #callbacks: ((owners: readonly string[]) => void)[] = [];
  readonly #tables: SnapshotTables;
  readonly #pathsOfUser: ReturnType<SnapshotTables["prepare"]>;
  readonly #ofRoot: ReturnType<SnapshotTables["prepare"]>;
  readonly #all: ReturnType<SnapshotTables["prepare"]>;
  readonly #listed: ReturnType<SnapshotTables["prepare"]>;

  /**
   * By owner, then user, until a grant of that owner changes. A stale entry gives no access: that is decided
   * on the inodes themselves.
   */
  readonly #known = new Map<string, Map<string, UserPaths>>();
  #knownCount = 0;
  readonly #place: ReturnType<SnapshotTables["prepare"]>;
  readonly #atInode: ReturnType<SnapshotTables["prepare"]>;

  constructor(deps: { tables: SnapshotTables; queue: Pick<WriteQueue, "submit">; nowMs: () => number }) {
    const { tables } = deps;
    this.#queue = deps.queue;
    this.#nowMs = deps.nowMs;
    this.#tables = tables;
    this.#place = tables.prepare("SELECT parent_id, name, flags FROM inode WHERE id = ?");
    this.#atInode = tables.prepare(
      "SELECT username, excluded FROM share_grant WHERE inode_id = ? ORDER BY username",
    );
    this.#pathsOfUser = tables.prepare(
      "SELECT path, excluded FROM share_grant WHERE username = ? AND owner = ? ORDER BY path LIMIT ?",
    );
    this.#ofRoot = tables.prepare(
      "SELECT path, username FROM share_grant WHERE owner = ? AND excluded = 0 ORDER BY path, username",
    );
    this.#all = tables.prepare(
      "SELECT owner, path, username FROM share_grant WHERE excluded = 0 ORDER BY owner, path, username",
    );
    const columns = "path, username, excluded, granted_by, granted_at_ms";
    this.#listed = tables.prepare(
      `SELECT ${columns} FROM share_grant WHERE owner = ? AND (path = ? OR (path >= ? AND path < ?))
         AND (path, username) > (?, ?) ORDER BY path, username LIMIT ?`,
    );
  }

  /** Cached, so that many shares with one user do not slow each of that user's calls. */
  pathsOf(owner: string, username: string): UserPaths {
    const known = this.#known.get(owner)?.get(username);
    if (known !== undefined) return known;
    const rows = this.#tables.read(
      () => this.#pathsOfUser.all(username, owner, GRANTS_PER_ROOT) as unknown as [string, number][],
    );
    const pathsWith = (flag: number): string[] =>
      rows.flatMap(([path, excluded]) => (excluded === flag ? [path] : []));
    const paths = { granted: pathsWith(0), excluded: pathsWith(1) };
    if (++this.#knownCount > SHARED_PATHS_CACHED) this.#forgetAll();
    const ofOwner = this.#known.get(owner);
    if (ofOwner === undefined) this.#known.set(owner, new Map([[username, paths]]));
    else ofOwner.set(username, paths);
    return paths;
  }

  onChange(callback: (owners: readonly string[]) => void): void {
    this.#callbacks.push(callback);
  }

  grant(change: GrantChange): Promise<Sharing> {
    return this.#queue.submit({ op: "share", ...this.#command(change) });
  }

  revoke(change: GrantChange): Promise<Sharing> {
    return this.#queue.submit({ op: "unshare", ...this.#command(change) });
  }

  /** Called by the writer when grants of these owners may have changed. */
  changed(owners: readonly string[]): void {
    this.forget(owners);
    for (const callback of this.#callbacks) callback(owners);
  }

  /** Forgets what was read of these roots. */
  forget(owners: readonly string[]): void {
    for (const owner of owners) this.#known.delete(owner);
  }

  #command(change: GrantChange): GrantChange & { nowMs: number } {
    const { owner, accessVersion, lockVersion, by, at, inodeId, username } = change;
    return { owner, accessVersion, lockVersion, by, at, inodeId, username, nowMs: this.#nowMs() };
  }

  #forgetAll(): void {
    this.#known.clear();
    this.#knownCount = 0;
  }

  #rowsOn(id: InodeId): ShareRow[] {
    return this.#atInode.all(id) as unknown as ShareRow[];
  }

  usersOf(id: InodeId): readonly string[] | undefined {
    return this.#tables.read(() => {
      const granted: InodeId[] = [];
      let at = id;
      for (let level = 0; level < CHAIN_MAX; level++) {
        const row = this.#place.get(at) as [InodeId | null, string, number] | undefined;
        if (row === undefined) return undefined;
        const [parentId, name, flags] = row;
        if ((flags & FLAG_HAS_GRANTS) !== 0) granted.push(at);
        // Of all inodes without a parent only a root's own directory has an empty name.
        if (parentId === null)
          return name === "" ? usersLetIn(granted.toReversed(), (at) => this.#rowsOn(at)) : undefined;
        at = parentId;
      }
      return undefined;
    });
  }

  ofRoot(owner: string): SharedPath[] {
    return this.#tables.read(() =>
      (this.#ofRoot.all(owner) as unknown as [string, string][]).map(([path, username]) => ({
        path,
        username,
      })),
    );
  }

  listed(owner: string, { path, after, limit }: ShareListPlace): ShareListPage {
    return this.#tables.read(() => {
      const shares: ListedShare[] = [];
      let bytes = 0;
      const rows = this.#listed.iterate(...atOrBelow(owner, path), after.path, after.username, limit + 1);
      // One by one, since moves may have made paths longer than the limit.
      for (const row of rows as Iterable<unknown> as Iterable<[string, string, number, string, number]>) {
        if (shares.length === limit || (bytes > SHARE_PAGE_BYTES && shares.length > 0)) {
          return { shares, isLast: false };
        }
        const [at, username, excluded, by, atMs] = row;
        bytes += Buffer.byteLength(at);
        shares.push({ path: at, username, isExcluded: excluded === 1, by, atMs });
      }
      return { shares, isLast: true };
    });
  }

  at(inodeIds: readonly InodeId[]): OwnShare[] {
    return this.#tables.read(() =>
      inodeIds.flatMap((inodeId) =>
        this.#rowsOn(inodeId).map(([username, excluded]) => ({
          inodeId,
          username,
          isExcluded: excluded === 1,
        })),
      ),
    );
  }

  all(): Map<string, SharedPath[]> {
    return this.#tables.read(() => {
      const byOwner = new Map<string, SharedPath[]>();
      for (const [owner, path, username] of this.#all.all() as unknown as [string, string, string][]) {
        const known = byOwner.get(owner);
        if (known === undefined) byOwner.set(owner, [{ path, username }]);
        else known.push({ path, username });
      }
      return byOwner;
    });
  }
}
