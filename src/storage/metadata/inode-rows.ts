// Rows of inodes as the writer reads, makes, changes and removes them.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { InodeId } from "#storage/contract/inode.ts";
import type { ChangeReply, InodeFields } from "./change-messages.ts";
import type { ContentRows } from "./content-rows.ts";
import { PropertyRows } from "./property-rows.ts";
import { FLAG_DAMAGED, FLAG_HAS_GRANTS, KIND_DIRECTORY, KIND_FILE } from "./schema.ts";
import type { DirectoryState, Ledger, RootState } from "./unit-of-work.ts";
import { usageOf } from "./unit-of-work.ts";

/** An inode's row as the writer reads it; a directory's sizes and counts are in the ledger. */
export interface InodeRow {
  readonly id: InodeId;
  readonly parentId: InodeId | null;
  readonly name: string;
  readonly kind: number;
  readonly size: number;
  readonly crc32: number;
  readonly version: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly flags: number;
  readonly contentId: number | null;
  readonly createdBy: string | null;
}

/** The values of a new inode. */
export interface NewInode {
  readonly id: InodeId;
  readonly parentId: InodeId | null;
  readonly name: string;
  readonly kind: number;
  readonly size: number;
  readonly crc32: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly contentId: number | null;
  readonly createdBy: string | null;
}

/** A file's content after a change. */
export interface FileUpdate {
  readonly size: number;
  readonly crc32: number;
  readonly version: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly flags: number;
  readonly contentId: number | null;
}

const COLUMNS = `id, parent_id AS parentId, name, kind, size, crc32, version, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, flags,
  content_id AS contentId, created_by AS createdBy`;

/** Statements on the inode table and on the grants of its rows. */
export class InodeRows {
  readonly #ledger: Ledger;
  readonly #content: ContentRows;
  readonly #byId: StatementSync;
  readonly #byName: StatementSync;
  readonly properties: PropertyRows;
  readonly #children: StatementSync;
  readonly #childrenAfter: StatementSync;
  readonly #insert: StatementSync;
  readonly #updateFile: StatementSync;
  readonly #place: StatementSync;
  readonly #rename: StatementSync;
  readonly #delete: StatementSync;
  readonly #flag: StatementSync;
  readonly #deleteGrants: StatementSync;

  constructor(db: DatabaseSync, ledger: Ledger, content: ContentRows) {
    this.properties = new PropertyRows(db, ledger);
    this.#ledger = ledger;
    this.#content = content;
    this.#byId = db.prepare(`SELECT ${COLUMNS} FROM inode WHERE id = ?`);
    this.#byName = db.prepare(`SELECT ${COLUMNS} FROM inode WHERE parent_id = ? AND name = ?`);
    this.#children = db.prepare(`SELECT ${COLUMNS} FROM inode WHERE parent_id = ? LIMIT ?`);
    this.#childrenAfter = db.prepare(
      `SELECT ${COLUMNS} FROM inode WHERE parent_id = ? AND name > ? ORDER BY name LIMIT ?`,
    );
    this.#insert = db.prepare(
      `INSERT INTO inode (id, parent_id, name, kind, size, crc32, version, mtime_ms, ctime_ms, flags, content_id, created_by,
         child_count, tree_inodes, tree_files)
       VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, 0, ?, ?, 0, 0, 0)
       ON CONFLICT (parent_id, name) DO NOTHING`,
    );
    this.#updateFile = db.prepare(
      "UPDATE inode SET size = ?, crc32 = ?, version = ?, mtime_ms = ?, ctime_ms = ?, flags = ?, content_id = ? WHERE id = ?",
    );
    this.#place = db.prepare("UPDATE inode SET parent_id = ? WHERE id = ?");
    this.#rename = db.prepare(
      "UPDATE inode SET parent_id = ?, name = ?, ctime_ms = ?, version = ? WHERE id = ?",
    );
    this.#delete = db.prepare("DELETE FROM inode WHERE id = ?");
    this.#flag = db.prepare("UPDATE inode SET flags = ? WHERE id = ?");
    this.#deleteGrants = db.prepare("DELETE FROM share_grant WHERE inode_id = ?");
  }

  byId(id: InodeId): InodeRow | undefined {
    return this.#byId.get(id) as InodeRow | undefined;
  }

  byName(parentId: InodeId, name: string): InodeRow | undefined {
    return this.#byName.get(parentId, name) as InodeRow | undefined;
  }

  /** Some entries of a directory, in any order. */
  children(parentId: InodeId, limit: number): InodeRow[] {
    return this.#children.all(parentId, limit) as unknown as InodeRow[];
  }

  /** Entries of a directory in order of their names, after a given name. */
  childrenAfter(parentId: InodeId, name: string, limit: number): InodeRow[] {
    return this.#childrenAfter.all(parentId, name, limit) as unknown as InodeRow[];
  }

  /** Inserts; false when the name is taken. */
  insert(inode: NewInode): boolean {
    const { id, parentId, name, kind, size, crc32, mtimeMs, ctimeMs, contentId, createdBy } = inode;
    const { changes } = this.#insert.run(
      id,
      parentId,
      name,
      kind,
      size,
      crc32,
      mtimeMs,
      ctimeMs,
      contentId,
      createdBy,
    );
    if (changes !== 1) return false;
    this.#ledger.count({ inodes: 1 });
    return true;
  }

  updateFile(id: InodeId, file: FileUpdate): void {
    const { size, crc32, version, mtimeMs, ctimeMs, flags, contentId } = file;
    this.#updateFile.run(size, crc32, version, mtimeMs, ctimeMs, flags, contentId, id);
  }

  rename(id: InodeId, place: { parentId: InodeId; name: string; ctimeMs: number; version: number }): void {
    this.#rename.run(place.parentId, place.name, place.ctimeMs, place.version, id);
  }

  setFlags(id: InodeId, flags: number): void {
    this.#flag.run(flags, id);
  }

  /** Takes an inode out of its tree; the caller records its new place. */
  unhang(id: InodeId): void {
    this.#place.run(null, id);
  }

  /** Takes a directory out of its tree; its entries are removed later. */
  detach(id: InodeId): void {
    this.#place.run(null, id);
    this.#content.purgeLater({ inodeId: id });
  }

  /** Deletes an inode without children, its content, properties and grants. Returns the rows handled. */
  delete(inode: InodeRow, root: RootState | undefined): number {
    let rows = 1;
    if (inode.kind === KIND_FILE) rows += this.#content.release(inode);
    else this.#ledger.dropDirectory(inode.id);
    rows += this.properties.drop(root, inode.id);
    if ((inode.flags & FLAG_HAS_GRANTS) !== 0) {
      const removed = Number(this.#deleteGrants.run(inode.id).changes);
      rows += removed;
      if (root !== undefined) {
        this.#ledger.touchRoot(root);
        root.grantCount -= removed;
      }
    }
    this.#delete.run(inode.id);
    return rows;
  }
}

/** The state of a new, empty directory. */
export function newDirectory(made: {
  readonly id: InodeId;
  readonly parentId: InodeId;
  readonly name: string;
  readonly nowMs: number;
  readonly createdBy: string | null;
}): DirectoryState {
  const { id, parentId, name, nowMs, createdBy } = made;
  const none = { size: 0, childCount: 0, treeInodes: 0, treeFiles: 0, height: 0, flags: 0, savedFor: 0 };
  return { id, parentId, name, ...none, mtimeMs: nowMs, ctimeMs: nowMs, version: 1, createdBy };
}

/** Answer to a change of a directory. */
export function directoryReply(state: DirectoryState, root: RootState, usedDeltaBytes: number): ChangeReply {
  return {
    inode: {
      id: state.id,
      parentId: state.parentId,
      name: state.name,
      kind: "directory",
      sizeBytes: state.size,
      childCount: state.childCount,
      mtimeMs: state.mtimeMs,
      ctimeMs: state.ctimeMs,
      version: state.version,
      crc32: 0,
      createdBy: state.createdBy,
      damaged: false,
    },
    usage: usageOf(root),
    usedDeltaBytes,
  };
}

/** Answer to a change of a file. */
export function fileReply(
  row: Omit<InodeRow, "contentId" | "kind">,
  root: RootState,
  usedDeltaBytes: number,
): ChangeReply {
  return { inode: fileFields(row), usage: usageOf(root), usedDeltaBytes };
}

function fileFields(row: Omit<InodeRow, "contentId" | "kind">): InodeFields {
  return {
    id: row.id,
    parentId: row.parentId,
    name: row.name,
    kind: "file",
    sizeBytes: row.size,
    childCount: 0,
    mtimeMs: row.mtimeMs,
    ctimeMs: row.ctimeMs,
    version: row.version,
    crc32: row.crc32,
    createdBy: row.createdBy,
    damaged: (row.flags & FLAG_DAMAGED) !== 0,
  };
}

/** True for a directory's row. */
export function isDirectory(row: InodeRow): boolean {
  return row.kind === KIND_DIRECTORY;
}
