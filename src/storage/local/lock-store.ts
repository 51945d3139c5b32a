// Locks on the main thread: read in the snapshot of the turn, changed by the writer.
import type { ChangeContext, InodeId } from "#storage/contract/inode.ts";
import type { HeldLock, LockStorage } from "#storage/contract/locks.ts";
import type { RootRecord } from "#storage/contract/storage.ts";
import type { SnapshotTables } from "#storage/metadata/snapshot-reader.ts";
import { CHAIN_MAX } from "#storage/metadata/unit-of-work.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

type Row = [string, InodeId, string, string, 0 | 1, 0 | 1, string, number];

/** Parents of inodes that are kept until the next commit: many locks and links lie below the same directories. */
const PARENTS_KEPT = 16_384;

/** Directory and name of an inode. */
type Parent = [InodeId | null, string];

/** See LockStorage. */
export class LocalLocks implements LockStorage {
  readonly #deps: {
    readonly tables: SnapshotTables;
    readonly queue: Pick<WriteQueue, "submit">;
    readonly nowMs: () => number;
    readonly root: (owner: string) => RootRecord | undefined;
  };
  readonly #ofRoot: ReturnType<SnapshotTables["prepare"]>;
  readonly #parent: ReturnType<SnapshotTables["prepare"]>;
  readonly #version: ReturnType<SnapshotTables["prepare"]>;
  /** Read at that version of the database, and forgotten with it. */
  readonly #parents = new Map<InodeId, Parent>();
  #parentsVersion = -1;

  constructor(deps: {
    tables: SnapshotTables;
    queue: Pick<WriteQueue, "submit">;
    nowMs: () => number;
    root: (owner: string) => RootRecord | undefined;
  }) {
    this.#deps = deps;
    this.#ofRoot = deps.tables.prepare(
      `SELECT token, inode_id, username, credential, is_exclusive, is_deep, note, expires_at_ms FROM lock
       WHERE root_number = (SELECT number FROM root WHERE owner = ?) AND expires_at_ms > ? ORDER BY token`,
    );
    this.#parent = deps.tables.prepare("SELECT parent_id, name FROM inode WHERE id = ?");
    this.#version = deps.tables.prepare("PRAGMA data_version");
  }

  ofRoot(owner: string): readonly HeldLock[] {
    const { tables, root, nowMs } = this.#deps;
    if ((root(owner)?.lockCount ?? 0) === 0) return [];
    const rows = tables.read(() => this.#ofRoot.all(owner, nowMs()) as unknown as Row[]);
    return rows.map(([token, inodeId, username, credential, isExclusive, isDeep, note, expiresAtMs]) => ({
      token,
      inodeId,
      username,
      credential,
      isExclusive: isExclusive === 1,
      isDeep: isDeep === 1,
      note,
      expiresAtMs,
    }));
  }

  namesBelow(inodeId: InodeId, above: InodeId): readonly string[] | undefined {
    return this.#deps.tables.read(() => {
      this.#renewParents();
      const names: string[] = [];
      let at: InodeId | null | undefined = inodeId;
      for (let level = 0; level < CHAIN_MAX && typeof at === "number"; level++) {
        if (at === above) return names.toReversed();
        const row = this.#parentOf(at);
        names.push(row?.[1] ?? "");
        at = row?.[0];
      }
      return undefined;
    });
  }

  #renewParents(): void {
    const [version] = this.#version.get() as unknown as [number];
    if (version === this.#parentsVersion && this.#parents.size < PARENTS_KEPT) return;
    this.#parentsVersion = version;
    this.#parents.clear();
  }

  #parentOf(id: InodeId): Parent | undefined {
    const kept = this.#parents.get(id);
    if (kept !== undefined) return kept;
    const row = this.#parent.get(id) as Parent | undefined;
    if (row !== undefined) this.#parents.set(id, row);
    return row;
  }

  async take(change: ChangeContext & Omit<HeldLock, "username">): Promise<void> {
    const { by } = change;
    await this.#deps.queue.submit({ op: "lock", ...change, username: by, nowMs: this.#deps.nowMs() });
  }

  async refresh(owner: string, token: string, expiresAtMs: number): Promise<void> {
    await this.#deps.queue.submit({
      op: "refreshLock",
      owner,
      token,
      expiresAtMs,
      nowMs: this.#deps.nowMs(),
    });
  }

  async end(owner: string, token: string): Promise<void> {
    await this.#deps.queue.submit({ op: "unlock", owner, token });
  }
}
