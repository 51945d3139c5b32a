// Rows of grants as the writer keeps them: who may reach an inode and all below it, each with the path at which it hangs.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GRANTS_PER_INODE, GRANTS_PER_ROOT } from "#base/limits.ts";
import { joinPath } from "#base/names.ts";
import type { InodeId } from "./inode.ts";
import type { InodeRows } from "./inode-rows.ts";
import type { DirectoryState, Ledger, RootState } from "./ledger.ts";
import { FLAG_HAS_GRANTS } from "./schema.ts";

/** One grant, and where it hangs. */
export interface PlacedGrant {
  readonly inodeId: InodeId;
  readonly username: string;
  readonly grantedBy: string;
  readonly grantedAtMs: number;
  readonly path: string;
}

const COLUMNS = "inode_id AS inodeId, username, granted_by AS grantedBy, granted_at_ms AS grantedAtMs, path";
/** A path and everything below it; "0" is the character after "/". */
const AT_OR_BELOW = "owner = ? AND (path = ? OR (path >= ? AND path < ?))";

/** Statements on the grants. Whatever they change moves the root's access version, and its owner is remembered until it is asked for. */
export class ShareRows {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #insert: StatementSync;
  readonly #find: StatementSync;
  readonly #count: StatementSync;
  readonly #below: StatementSync;
  readonly #delete: StatementSync;
  readonly #move: StatementSync;
  readonly #changedOwners = new Set<string>();

  constructor(db: DatabaseSync, ledger: Ledger, inodes: InodeRows) {
    this.#ledger = ledger;
    this.#inodes = inodes;
    this.#insert = db.prepare(
      `INSERT INTO share_grant (inode_id, username, granted_by, granted_at_ms, owner, path) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
    );
    this.#find = db.prepare("SELECT 1 FROM share_grant WHERE inode_id = ? AND username = ?");
    this.#count = db.prepare("SELECT count(*) AS count FROM share_grant WHERE inode_id = ?");
    this.#below = db.prepare(`SELECT ${COLUMNS} FROM share_grant WHERE ${AT_OR_BELOW} ORDER BY path`);
    this.#delete = db.prepare("DELETE FROM share_grant WHERE inode_id = ? AND username = ?");
    this.#move = db.prepare(
      `UPDATE share_grant SET path = ? || substr(path, length(?) + 1) WHERE ${AT_OR_BELOW}`,
    );
  }

  /** Owners whose grants have changed since this was last asked, also where the change was taken back. */
  takeChangedOwners(): string[] {
    const owners = [...this.#changedOwners];
    this.#changedOwners.clear();
    return owners;
  }

  /** True when the user has a grant at this very inode. */
  has(inodeId: InodeId, username: string): boolean {
    return this.#find.get(inodeId, username) !== undefined;
  }

  /** Which of two limits another grant would pass: of the root, of the inode, or none. */
  limitPassed(root: RootState, inodeId: InodeId): "root" | "inode" | undefined {
    if (root.grantCount >= GRANTS_PER_ROOT) return "root";
    const { count } = this.#count.get(inodeId) as { count: number };
    return count >= GRANTS_PER_INODE ? "inode" : undefined;
  }

  /** Puts a grant at an inode; false when it is there already. */
  add(root: RootState, grant: PlacedGrant): boolean {
    const { inodeId, username, grantedBy, grantedAtMs, path } = grant;
    const { changes } = this.#insert.run(inodeId, username, grantedBy, grantedAtMs, root.owner, path);
    if (changes === 0) return false;
    this.#mark(inodeId, true);
    this.#changed(root, 1);
    return true;
  }

  /**
   * Takes away every grant at a path and below it, or those of one user, and returns them. For a removal, for the trash, and for Unshare. Costs one look where the root has no grants.
   */
  takeBelow(root: RootState, path: string, username?: string): PlacedGrant[] {
    if (root.grantCount === 0) return [];
    const all = this.#below.all(...atOrBelow(root.owner, path)) as unknown as PlacedGrant[];
    const taken = username === undefined ? all : all.filter((grant) => grant.username === username);
    for (const { inodeId, username: user } of taken) this.#delete.run(inodeId, user);
    for (const inodeId of new Set(taken.map((grant) => grant.inodeId))) {
      const { count } = this.#count.get(inodeId) as { count: number };
      if (count === 0) this.#mark(inodeId, false);
    }
    if (taken.length > 0) this.#changed(root, -taken.length);
    return taken;
  }

  /** After a move: grants at the old path and below hang at the new one. */
  moved(root: RootState, from: string, to: string): void {
    if (root.grantCount === 0) return;
    const { changes } = this.#move.run(to, from, ...atOrBelow(root.owner, from));
    if (changes !== 0) this.#changed(root, 0);
  }

  /** Sets the mark in the row at once, since a removal in the same transaction reads it there. */
  #mark(inodeId: InodeId, isGranted: boolean): void {
    const mark = (flags: number): number => (isGranted ? flags | FLAG_HAS_GRANTS : flags & ~FLAG_HAS_GRANTS);
    const directory = this.#ledger.directory(inodeId);
    if (directory !== undefined) {
      this.#ledger.touch(directory);
      directory.flags = mark(directory.flags);
      this.#inodes.setFlags(inodeId, directory.flags);
      return;
    }
    const row = this.#inodes.byId(inodeId);
    if (row !== undefined) this.#inodes.setFlags(inodeId, mark(row.flags));
  }

  #changed(root: RootState, grants: number): void {
    this.#ledger.touchRoot(root);
    root.grantCount += grants;
    root.accessVersion++;
    this.#changedOwners.add(root.owner);
  }
}

/** The path of an entry below a chain that runs from its directory up to the root's own. */
export function pathBelow(chain: readonly DirectoryState[], name: string): string {
  const names = chain.slice(0, -1).map((state) => state.name);
  return joinPath([...names.toReversed(), name]);
}

/** True when both chains pass the same directories with grants: whoever reaches the one place reaches the other. */
export function sameGrantsAbove(a: readonly DirectoryState[], b: readonly DirectoryState[]): boolean {
  const granted = (chain: readonly DirectoryState[]): InodeId[] =>
    chain.filter(({ flags }) => (flags & FLAG_HAS_GRANTS) !== 0).map(({ id }) => id);
  const [one, other] = [granted(a), granted(b)];
  return one.length === other.length && one.every((id, index) => id === other[index]);
}

function atOrBelow(owner: string, path: string): [string, string, string, string] {
  const below = path === "/" ? "/" : `${path}/`;
  return [owner, path, below, `${below.slice(0, -1)}0`];
}
