// Rows of grants and exclusions as the writer keeps them: user, inode and path of each.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { GRANTS_PER_INODE, GRANTS_PER_ROOT } from "#base/limits.ts";
import { joinPath } from "#base/names.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { InodeRows } from "./inode-rows.ts";
import { FLAG_HAS_GRANTS } from "./schema.ts";
import { isLetIn } from "./share-resolution.ts";
import type { DirectoryState, Ledger, RootState } from "./unit-of-work.ts";

/** One grant or exclusion and its place. An inode has at most one of the two for a user. */
export interface PlacedGrant {
  readonly inodeId: InodeId;
  readonly username: string;
  readonly grantedBy: string;
  readonly grantedAtMs: number;
  readonly path: string;
  /** 1 for an exclusion, which ends a grant above. */
  readonly excluded: 0 | 1;
}

const COLUMNS =
  "inode_id AS inodeId, username, granted_by AS grantedBy, granted_at_ms AS grantedAtMs, path, excluded";
/** A path and everything below it; "0" is the character after "/". */
const AT_OR_BELOW = "owner = ? AND (path = ? OR (path >= ? AND path < ?))";

/**
 * Statements on grants and exclusions, both counted in grantCount. A change moves the root's access version
 * and records its owner for takeChangedOwners.
 */
export class ShareRows {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #insert: StatementSync;
  readonly #find: StatementSync;
  readonly #count: StatementSync;
  readonly #ofInode: StatementSync;
  readonly #below: StatementSync;
  readonly #delete: StatementSync;
  readonly #move: StatementSync;
  readonly #rename: StatementSync;
  readonly #changedOwners = new Set<string>();

  constructor(db: DatabaseSync, ledger: Ledger, inodes: InodeRows) {
    this.#ledger = ledger;
    this.#inodes = inodes;
    this.#insert = db.prepare(
      `INSERT INTO share_grant (inode_id, username, granted_by, granted_at_ms, owner, path, excluded)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#find = db.prepare("SELECT excluded FROM share_grant WHERE inode_id = ? AND username = ?");
    this.#count = db.prepare("SELECT count(*) AS count FROM share_grant WHERE inode_id = ?");
    this.#ofInode = db.prepare("SELECT username, excluded FROM share_grant WHERE inode_id = ?");
    this.#below = db.prepare(`SELECT ${COLUMNS} FROM share_grant WHERE ${AT_OR_BELOW} ORDER BY path`);
    this.#delete = db.prepare("DELETE FROM share_grant WHERE inode_id = ? AND username = ?");
    this.#rename = db.prepare("UPDATE share_grant SET owner = ? WHERE owner = ?");
    this.#move = db.prepare(
      `UPDATE share_grant SET path = ? || substr(path, length(?) + 1) WHERE ${AT_OR_BELOW}`,
    );
  }

  /** Owners whose grants have changed since the last call, rolled back changes included. */
  takeChangedOwners(): string[] {
    const owners = [...this.#changedOwners];
    this.#changedOwners.clear();
    return owners;
  }

  /** The user's row on this very inode, if any. */
  at(inodeId: InodeId, username: string): "grant" | "exclusion" | undefined {
    const row = this.#find.get(inodeId, username) as { excluded: number } | undefined;
    if (row === undefined) return undefined;
    return row.excluded === 1 ? "exclusion" : "grant";
  }

  /** True when the rows on a chain, the deepest directory first, let the user in. */
  letsIn(chain: readonly DirectoryState[], username: string): boolean {
    return isLetIn(chain, ({ id, flags }) =>
      (flags & FLAG_HAS_GRANTS) === 0 ? undefined : this.at(id, username),
    );
  }

  /** Users whom an exclusion keeps out of a chain, the deepest directory first, and the path of each exclusion. */
  keptOut(chain: readonly DirectoryState[]): Pick<PlacedGrant, "path" | "username">[] {
    const decided = new Set<string>();
    return chain.flatMap(({ id, name, flags }, at) => {
      if ((flags & FLAG_HAS_GRANTS) === 0) return [];
      const path = pathBelow(chain.slice(at + 1), name);
      const rows = this.#ofInode.all(id) as unknown as Pick<PlacedGrant, "excluded" | "username">[];
      const news = rows.filter(({ username }) => !decided.has(username));
      for (const { username } of news) decided.add(username);
      return news.filter(({ excluded }) => excluded === 1).map(({ username }) => ({ username, path }));
    });
  }

  /**
   * The limit that another row at an inode would pass after so many of the root's are gone: the root's, the
   * inode's, or none.
   */
  limitPassed(root: RootState, inodeId: InodeId, gone = 0): "root" | "inode" | undefined {
    if (root.grantCount - gone >= GRANTS_PER_ROOT) return "root";
    const { count } = this.#count.get(inodeId) as { count: number };
    return count >= GRANTS_PER_INODE ? "inode" : undefined;
  }

  /** Adds a grant or exclusion on an inode where the user has neither. */
  add(root: RootState, grant: PlacedGrant): void {
    const { inodeId, username, grantedBy, grantedAtMs, path, excluded } = grant;
    this.#insert.run(inodeId, username, grantedBy, grantedAtMs, root.owner, path, excluded);
    this.#mark(inodeId, true);
    this.#changed(root, 1);
  }

  /** Rows at a path and below it, in the order of paths. Costs nothing where the root has no grants. */
  below(root: RootState, path: string): PlacedGrant[] {
    if (root.grantCount === 0) return [];
    return this.#below.all(...atOrBelow(root.owner, path)) as unknown as PlacedGrant[];
  }

  /** Exclusions at a path alone. */
  excludedAt(root: RootState, path: string): PlacedGrant[] {
    return this.below(root, path).filter((row) => row.excluded === 1 && row.path === path);
  }

  /**
   * Excludes from an entry the users whom what it has replaced had excluded, but for those with a share of the entry
   * itself. Throws SHARE_LIMIT.
   */
  keepOut(
    root: RootState,
    place: Pick<PlacedGrant, "inodeId" | "path">,
    excluded: readonly PlacedGrant[],
  ): void {
    for (const row of excluded) {
      if (this.at(place.inodeId, row.username) !== undefined) continue;
      const passed = this.limitPassed(root, place.inodeId);
      if (passed !== undefined) throw shareLimit(passed);
      this.add(root, { ...row, ...place });
    }
  }

  /** Deletes those rows and returns them; for removals and for the trash. */
  takeBelow(root: RootState, path: string): PlacedGrant[] {
    const taken = this.below(root, path);
    this.take(root, taken);
    return taken;
  }

  /** Deletes rows. */
  take(root: RootState, taken: readonly PlacedGrant[]): void {
    for (const { inodeId, username } of taken) this.#delete.run(inodeId, username);
    for (const inodeId of new Set(taken.map((grant) => grant.inodeId))) {
      const { count } = this.#count.get(inodeId) as { count: number };
      if (count === 0) this.#mark(inodeId, false);
    }
    if (taken.length > 0) this.#changed(root, -taken.length);
  }

  /** After a move, changes the paths of grants from the old place to the new one. */
  moved(root: RootState, from: string, to: string): void {
    if (root.grantCount === 0) return;
    const { changes } = this.#move.run(to, from, ...atOrBelow(root.owner, from));
    if (changes !== 0) this.#changed(root, 0);
  }

  /** Sets the mark in the row at once: a removal in the same transaction reads it there. */
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

  /** Puts another owner's name on a root's rows; both names count as changed. */
  changeOwner(root: RootState, owner: string): void {
    this.#rename.run(owner, root.owner);
    this.#changed(root, 0);
    this.#changedOwners.add(owner);
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

/**
 * True when both chains pass the same directories with grants or exclusions: the same users reach both
 * places.
 */
export function sameGrantsAbove(a: readonly DirectoryState[], b: readonly DirectoryState[]): boolean {
  const granted = (chain: readonly DirectoryState[]): InodeId[] =>
    chain.filter(({ flags }) => (flags & FLAG_HAS_GRANTS) !== 0).map(({ id }) => id);
  const [one, other] = [granted(a), granted(b)];
  return one.length === other.length && one.every((id, index) => id === other[index]);
}

/** The refusal of one more grant or exclusion. */
export function shareLimit(passed: "root" | "inode"): GroveError {
  const limit = passed === "root" ? GRANTS_PER_ROOT : GRANTS_PER_INODE;
  const text =
    passed === "root"
      ? `a user has at most ${limit} shares in all, what is taken out of one included`
      : `one file or folder is shared with at most ${limit} users, or taken out of shares with them`;
  return new GroveError("SHARE_LIMIT", text, { metadata: { limit: String(limit) } });
}

/**
 * Values for a range over the paths of an owner's rows: the owner, a path, and the bounds of the paths below
 * it.
 */
export function atOrBelow(owner: string, path: string): [string, string, string, string] {
  const below = path === "/" ? "/" : `${path}/`;
  return [owner, path, below, `${below.slice(0, -1)}0`];
}
