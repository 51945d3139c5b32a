// Rows of locks as the writer keeps them: who holds which inode, and until when (RFC 4918, section 6).
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { covers } from "#base/names.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import { CHAIN_MAX, type Ledger, type RootState } from "./unit-of-work.ts";

/** One lock. */
export interface LockRow {
  readonly token: string;
  readonly inodeId: InodeId;
  readonly username: string;
  /** The credential that took it. */
  readonly credential: string;
  readonly isExclusive: 0 | 1;
  /** 1 where it holds for everything below as well. */
  readonly isDeep: 0 | 1;
  /** What the program that took it says about its person; XML. */
  readonly note: string;
  readonly expiresAtMs: number;
}

/** Locks that a root's writer remembers: more than are taken between a check and its change. */
const LATEST_LOCKS = 64;

/** Columns of a lock, in the order of LockRow. */
export const LOCK_COLUMNS =
  "token, inode_id AS inodeId, username, credential, is_exclusive AS isExclusive, is_deep AS isDeep, note, expires_at_ms AS expiresAtMs";

/** Statements on locks, which root.lock_count counts. */
export class LockRows {
  readonly #ledger: Ledger;
  readonly #ofRoot: StatementSync;
  readonly #insert: StatementSync;
  readonly #refresh: StatementSync;
  readonly #delete: StatementSync;
  readonly #parent: StatementSync;

  constructor(db: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#ofRoot = db.prepare(`SELECT ${LOCK_COLUMNS} FROM lock WHERE root_number = ? ORDER BY token`);
    this.#insert = db.prepare(
      `INSERT INTO lock (token, root_number, inode_id, username, credential, is_exclusive, is_deep, note, expires_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#refresh = db.prepare("UPDATE lock SET expires_at_ms = ? WHERE token = ?");
    this.#delete = db.prepare("DELETE FROM lock WHERE token = ? AND root_number = ?");
    this.#parent = db.prepare("SELECT parent_id AS parentId FROM inode WHERE id = ?");
  }

  /** Locks of a root, those that have ended by themselves included. */
  ofRoot(root: RootState): LockRow[] {
    return root.lockCount === 0 ? [] : (this.#ofRoot.all(root.number) as unknown as LockRow[]);
  }

  /** Adds a lock at a path and moves the root's lock version. */
  add(root: RootState, lock: LockRow, path: string): void {
    const { token, inodeId, username, credential, isExclusive, isDeep, note, expiresAtMs } = lock;
    this.#insert.run(
      token,
      root.number,
      inodeId,
      username,
      credential,
      isExclusive,
      isDeep,
      note,
      expiresAtMs,
    );
    this.#ledger.touchRoot(root);
    root.lockCount++;
    root.lockVersion++;
    const taken = { version: root.lockVersion, path };
    root.latestLocks = [...root.latestLocks, taken].slice(-LATEST_LOCKS);
  }

  /** Moves the end of a lock. */
  refresh(token: string, expiresAtMs: number): void {
    this.#refresh.run(expiresAtMs, token);
  }

  /** Ends a lock; false where the root has none with that token. */
  drop(root: RootState, token: string): boolean {
    if (Number(this.#delete.run(token, root.number).changes) === 0) return false;
    this.#ledger.touchRoot(root);
    root.lockCount--;
    return true;
  }

  /** Ends the locks on an inode that goes away or elsewhere, and on everything below it. */
  dropBelow(root: RootState, inodeId: InodeId): void {
    const isWithin = this.within(inodeId);
    for (const lock of this.ofRoot(root)) {
      if (isWithin(lock.inodeId)) this.drop(root, lock.token);
    }
  }

  /**
   * True for an inode itself and for what lies below it. Each folder above those that are asked about is looked up
   * once: many locks in a deep one would hold all writers up. For as long as nothing moves.
   */
  within(above: InodeId): (inodeId: InodeId) => boolean {
    const known = new Map<InodeId, boolean>([[above, true]]);
    return (inodeId) => {
      const way: InodeId[] = [];
      let at: InodeId | null | undefined = inodeId;
      while (way.length < CHAIN_MAX && typeof at === "number" && !known.has(at)) {
        way.push(at);
        at = (this.#parent.get(at) as { parentId: InodeId | null } | undefined)?.parentId;
      }
      const isWithin = typeof at === "number" && known.get(at) === true;
      for (const id of way) known.set(id, isWithin);
      return isWithin;
    };
  }
}

/** True unless all locks taken since a version are known, and none lies at, above or below one of the paths. */
export function mayBeLocked(
  { lockVersion, latestLocks }: Pick<RootState, "latestLocks" | "lockVersion">,
  sinceVersion: number,
  paths: readonly string[],
): boolean {
  const since = latestLocks.filter(({ version }) => version > sinceVersion);
  if (since.length !== lockVersion - sinceVersion) return true;
  return since.some((lock) => paths.some((path) => covers(lock.path, path) || covers(path, lock.path)));
}
