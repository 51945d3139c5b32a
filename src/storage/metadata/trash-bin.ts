// Rows of the trash as the writer makes and removes them: trashed inodes, replaced content, and former
// shares.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { covers } from "#base/names.ts";
import { type FormerShare, type InodeId, inodeIdText, type TrashedContent } from "#storage/contract/inode.ts";
import { type TrashItem, trashIdOf } from "#storage/contract/trash.ts";
import type { ChangeFields } from "./change-messages.ts";
import type { ContentRows } from "./content-rows.ts";
import { type InodeRow, type InodeRows, isDirectory } from "./inode-rows.ts";
import { FLAG_DAMAGED, FLAG_HAS_GRANTS } from "./schema.ts";
import { type PlacedGrant, pathBelow, type ShareRows, shareLimit } from "./share-rows.ts";
import { type DirectoryState, type Ledger, type Place, type RootState } from "./unit-of-work.ts";

/** Former shares listed for one item of the trash; the rest is only counted. */
const TRASH_FORMER_SHARES_LISTED = 100;

/** A row of the trash. */
export interface TrashRow {
  readonly id: string;
  readonly inodeId: InodeId;
  readonly originalPath: string;
  readonly trashedAtMs: number;
}

/** A row of trash_grant that is an exclusion. */
interface Exclusion {
  readonly inodeId: InodeId;
  readonly username: string;
  readonly path: string;
}

/** Where an item is restored. */
export interface ExclusionsPlace {
  readonly path: string;
  /** Folders above it that were made anew. */
  readonly made: readonly Pick<PlacedGrant, "inodeId" | "path">[];
  readonly by: string;
  readonly nowMs: number;
}

/** Bytes and inodes of a subtree, its top included. */
export interface Weight {
  readonly bytes: number;
  readonly inodes: number;
  readonly files: number;
}

/** Statements on the trash; the ledger keeps the sizes and counts. */
export class TrashBin {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #content: ContentRows;
  readonly #shares: ShareRows;
  readonly #insert: StatementSync;
  readonly #select: StatementSync;
  readonly #delete: StatementSync;
  readonly #keepGrant: StatementSync;
  readonly #keepAbove: StatementSync;
  readonly #exclusions: StatementSync;
  readonly #formerShares: StatementSync;
  readonly #deleteFormerShares: StatementSync;
  /** Item that the running command has kept on its own. */
  #kept: TrashedContent | undefined;

  constructor(
    db: DatabaseSync,
    rows: { ledger: Ledger; inodes: InodeRows; content: ContentRows; shares: ShareRows },
  ) {
    this.#ledger = rows.ledger;
    this.#inodes = rows.inodes;
    this.#content = rows.content;
    this.#shares = rows.shares;
    this.#insert = db.prepare(
      `INSERT INTO trash (root_number, id, inode_id, original_path, trashed_at_ms, trashed_by) VALUES (?, ?, ?, ?, ?, ?)`,
    );
    this.#select = db.prepare(
      `SELECT id, inode_id AS inodeId, original_path AS originalPath, trashed_at_ms AS trashedAtMs FROM trash
       WHERE root_number = ? AND id = ?`,
    );
    this.#delete = db.prepare("DELETE FROM trash WHERE root_number = ? AND id = ?");
    this.#keepGrant = db.prepare(
      "INSERT INTO trash_grant (root_number, trash_id, inode_id, username, path, excluded) VALUES (?, ?, ?, ?, ?, ?)",
    );
    // A row of the item's own says the same, or more.
    this.#keepAbove = db.prepare(
      "INSERT INTO trash_grant (root_number, trash_id, inode_id, username, path, excluded) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO NOTHING",
    );
    this.#exclusions = db.prepare(
      `SELECT inode_id AS inodeId, username, path FROM trash_grant
       WHERE root_number = ? AND trash_id = ? AND excluded = 1 ORDER BY path`,
    );
    this.#formerShares = db.prepare(FORMER_SHARES);
    this.#deleteFormerShares = db.prepare("DELETE FROM trash_grant WHERE root_number = ? AND trash_id = ?");
  }

  /** Moves an entry from its directory to the trash; the caller updates the directory's times. */
  put({ root, chain }: Place, row: InodeRow, change: ChangeFields): TrashItem {
    const state = isDirectory(row) ? this.#ledger.directory(row.id) : undefined;
    const { bytes, inodes, files } = weightOf(row, state);
    this.#inodes.unhang(row.id);
    if (state !== undefined) {
      this.#ledger.touch(state);
      state.parentId = null;
    }
    this.#ledger.count({ inodes: -inodes });
    const delta = { bytes: -bytes, inodes: -inodes, files: -files };
    this.#ledger.addToUsage(root, delta);
    this.#ledger.addToChain(chain, delta);
    this.#ledger.addToTrash(root, { bytes, inodes });
    const item = this.#add({ root, chain }, row, { bytes, inodes }, change);
    return { ...item, formerShares: this.#takeGrants({ root, chain }, row, item) };
  }

  /**
   * Keeps a file's content when a user other than the owner is about to replace it (D13). A file of its own
   * in the trash takes over the content; the caller subtracts its bytes from the live ones. An empty file is
   * not kept. Returns the bytes kept.
   */
  keepContent(place: Place, old: InodeRow, change: ChangeFields): number {
    const { root } = place;
    const id = this.#ledger.takeId(root);
    const { name, kind, size, crc32, mtimeMs, ctimeMs, contentId, createdBy } = old;
    const kept = { id, parentId: null, name, kind, size, crc32, mtimeMs, ctimeMs, contentId, createdBy };
    this.#inodes.insert(kept);
    if ((old.flags & FLAG_DAMAGED) !== 0) this.#inodes.setFlags(id, FLAG_DAMAGED);
    if (contentId === null) this.#content.moveInline(old.id, id);
    // Only live inodes are counted.
    this.#ledger.count({ inodes: -1 });
    this.#ledger.addToTrash(root, { bytes: size, inodes: 1 });
    const item = this.#add(place, { ...old, id }, { bytes: size, inodes: 1 }, change);
    this.#kept = { ...item, formerShares: [] };
    // Whom the file is kept from, its former content stays kept from.
    if ((old.flags & FLAG_HAS_GRANTS) !== 0) {
      for (const { username, path, excluded } of this.#shares.below(root, item.originalPath)) {
        if (excluded === 1) this.#keepGrant.run(root.number, item.id, id, username, path, excluded);
      }
    }
    this.#keepExclusionsAbove(place, id, item.id);
    return size;
  }

  /** Like `put`, for an entry that another one is about to replace as a whole. */
  keepEntry(place: Place, row: InodeRow, change: ChangeFields): void {
    this.#kept = this.put(place, row, change);
  }

  /** The item kept of a replaced file since the last call; at most one per command. */
  takeKept(): TrashedContent | undefined {
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept === undefined) return undefined;
    const { id, originalPath, sizeBytes, inodeCount, formerShares } = kept;
    return { id, originalPath, sizeBytes, inodeCount, formerShares };
  }

  /** An item of a root's trash; undefined when it is missing. */
  find(root: RootState, id: string): TrashRow | undefined {
    return this.#select.get(root.number, id) as TrashRow | undefined;
  }

  /** Former shares of an item. */
  formerShares(root: RootState, item: Pick<TrashRow, "id" | "originalPath">): FormerShare[] {
    return formerSharesOf(this.#formerShares, root.number, item);
  }

  /**
   * Restores the exclusions of an item at its path, and of folders above it that were made anew: users who were
   * excluded stay so until it is shared again. Throws SHARE_LIMIT.
   */
  putBackExclusions(root: RootState, item: TrashRow, to: ExclusionsPlace): void {
    const kept = this.#exclusions.all(root.number, item.id) as unknown as Exclusion[];
    const added = { grantedBy: to.by, grantedAtMs: to.nowMs, excluded: 1 } as const;
    for (const { inodeId, username, path } of kept) {
      const place = covers(item.originalPath, path)
        ? { inodeId, path: `${to.path}${path.slice(item.originalPath.length)}` }
        : to.made.find((folder) => folder.path === path);
      if (place === undefined) continue;
      const passed = this.#shares.limitPassed(root, place.inodeId);
      if (passed !== undefined) throw shareLimit(passed);
      this.#shares.add(root, { ...place, ...added, username });
    }
  }

  /** Deletes an item's row; the caller takes over its inode. */
  forget(root: RootState, id: string): void {
    this.#deleteFormerShares.run(root.number, id);
    this.#delete.run(root.number, id);
  }

  #add(
    { root, chain }: Place,
    row: InodeRow,
    weight: Pick<Weight, "bytes" | "inodes">,
    change: ChangeFields,
  ): Omit<TrashItem, "formerShares"> {
    const names = chain.map(({ name }) => name).toReversed();
    const originalPath = `${names.join("/")}/${row.name}`;
    const id = trashIdOf(change.nowMs, inodeIdText(row.id));
    const by = change.by === change.owner ? null : change.by;
    this.#insert.run(root.number, id, row.id, originalPath, change.nowMs, by);
    return {
      id,
      kind: isDirectory(row) ? "directory" : "file",
      originalPath,
      sizeBytes: weight.bytes,
      inodeCount: weight.inodes,
      trashedAtMs: change.nowMs,
      trashedBy: change.by,
    };
  }

  /**
   * Takes back and records every share and exclusion at or below an item. The cost grows with the shares
   * below it and not with its files.
   */
  #takeGrants(
    { root, chain }: Place,
    row: InodeRow,
    item: Pick<TrashRow, "id" | "originalPath">,
  ): FormerShare[] {
    if (root.grantCount === 0) return [];
    // Access of users through a share, here or above, must be decided again.
    this.#ledger.touchRoot(root);
    root.accessVersion++;
    const taken = this.#shares.takeBelow(root, pathBelow(chain, row.name));
    for (const { inodeId, username, path, excluded } of taken) {
      this.#keepGrant.run(root.number, item.id, inodeId, username, path, excluded);
    }
    this.#keepExclusionsAbove({ root, chain }, row.id, item.id);
    return taken.length === 0 ? [] : this.formerShares(root, item);
  }

  /** Keeps who is kept out of folders above an item, which may have to be made anew when it is restored. */
  #keepExclusionsAbove({ root, chain }: Place, inodeId: InodeId, itemId: string): void {
    if (root.grantCount === 0) return;
    for (const { username, path } of this.#shares.keptOut(chain))
      this.#keepAbove.run(root.number, itemId, inodeId, username, path);
  }
}

/** Reads the former shares of an item: the number of its root, its id, and how many at most. */
export const FORMER_SHARES =
  "SELECT path, username FROM trash_grant WHERE root_number = ? AND trash_id = ? AND excluded = 0 ORDER BY path, username LIMIT ?";

/** Former shares of an item, each with its names below the item, by a statement of FORMER_SHARES. */
export function formerSharesOf(
  statement: StatementSync,
  rootNumber: number,
  item: { readonly id: string; readonly originalPath: string },
): FormerShare[] {
  const rows = statement.all(rootNumber, item.id, TRASH_FORMER_SHARES_LISTED) as {
    path: string;
    username: string;
  }[];
  return rows.map(({ path, username }) => ({
    names: path.slice(item.originalPath.length).split("/").slice(1),
    username,
  }));
}

/** Weight of an inode and everything below it; `state` is that of a directory. */
export function weightOf(row: InodeRow, state: DirectoryState | undefined): Weight {
  if (state === undefined) return { bytes: row.size, inodes: 1, files: 1 };
  return { bytes: state.size, inodes: 1 + state.treeInodes, files: state.treeFiles };
}
