// Reads of the trash on the main thread: pages of one root's, and the oldest items of all for expiry.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { LIST_PAGE_MAX } from "#base/limits.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import { rootNumberOf } from "#storage/contract/inode.ts";
import type { ListedTrashItem, TrashHead, TrashPage, TrashQuery } from "#storage/contract/trash.ts";
import { IS_HERE } from "./moved-roots.ts";
import { KIND_DIRECTORY } from "./schema.ts";
import { FORMER_SHARES, formerSharesOf } from "./trash-bin.ts";

/** Bytes of paths and users on one page of the trash, so that stock clients can take it. */
const TRASH_PAGE_BYTES = 1_000_000;
/** Names that one page of the trash looks up to find missing folders; then the page ends. */
const TRASH_PAGE_LOOKUPS = 16_384;

interface Row {
  readonly id: string;
  readonly inodeId: InodeId;
  readonly kind: number;
  readonly originalPath: string;
  readonly sizeBytes: number;
  readonly treeInodes: number;
  readonly trashedAtMs: number;
  readonly trashedBy: string | null;
}

/** A root's fields for reads of its trash. */
export interface TrashRoot {
  readonly owner: string;
  readonly directoryId: InodeId;
}

const TOKEN_MAX_LENGTH = 256;

/** Statements of the reading connection; the caller holds the snapshot. */
export class TrashReader {
  readonly #page: StatementSync;
  readonly #byPath: StatementSync;
  readonly #before: StatementSync;
  readonly #oldest: StatementSync;
  readonly #formerShares: StatementSync;
  readonly #child: StatementSync;

  constructor(db: DatabaseSync) {
    const item = `SELECT trash.id, inode_id AS inodeId, kind, original_path AS originalPath, size AS sizeBytes, tree_inodes AS treeInodes,
      trashed_at_ms AS trashedAtMs, trashed_by AS trashedBy FROM trash JOIN inode ON inode.id = inode_id`;
    this.#page = db.prepare(
      `${item} WHERE root_number = ? AND trash.id < ? AND trash.id >= ? ORDER BY trash.id DESC LIMIT ?`,
    );
    this.#byPath = db.prepare(
      `${item} WHERE root_number = ? AND original_path = ? AND trash.id < ? AND trash.id >= ? ORDER BY trash.id DESC LIMIT ?`,
    );
    const head = `SELECT owner, trash.id, trashed_at_ms AS trashedAtMs, size AS sizeBytes
      FROM trash JOIN inode ON inode.id = inode_id JOIN root ON root.number = root_number`;
    this.#before = db.prepare(
      `${head} AND ${IS_HERE} WHERE trashed_at_ms < ? ORDER BY trashed_at_ms LIMIT ?`,
    );
    this.#oldest = db.prepare(
      `${head} WHERE root_number = ? AND trashed_at_ms < ? ORDER BY trash.id LIMIT ?`,
    );
    this.#formerShares = db.prepare(FORMER_SHARES);
    this.#child = db.prepare("SELECT id, kind FROM inode WHERE parent_id = ? AND name = ?");
  }

  /** One page, the newest first; stable, since new items come before the first page. */
  list(root: TrashRoot, query: TrashQuery): TrashPage {
    const number = numberOf(root);
    const limit = Math.min(Math.max(1, Math.trunc(query.limit)), LIST_PAGE_MAX);
    const before = readToken(query.pageToken, number);
    const rows = this.#rows(number, query, before, limit + 1);
    const items: ListedTrashItem[] = [];
    const parents = new Parents(this.#child, root.directoryId);
    let bytes = 0;
    for (const row of rows.slice(0, limit)) {
      if (items.length > 0 && (bytes > TRASH_PAGE_BYTES || parents.lookups > TRASH_PAGE_LOOKUPS)) break;
      const item = this.#item(root, row, parents);
      bytes += bytesOf(item);
      items.push(item);
    }
    const last = items.length < rows.length ? items.at(-1) : undefined;
    return { items, nextPageToken: last === undefined ? undefined : tokenOf(number, last.id) };
  }

  before(timeMs: number, limit: number): TrashHead[] {
    return this.#before.all(timeMs, limit) as unknown as TrashHead[];
  }

  oldest(root: TrashRoot, beforeMs: number, limit: number): TrashHead[] {
    return this.#oldest.all(numberOf(root), beforeMs, limit) as unknown as TrashHead[];
  }

  #rows(number: number, query: TrashQuery, before: string, limit: number): Row[] {
    const { id, originalPath } = query;
    // An id alone is the range from it to its direct successor.
    const [from, to] = id === undefined ? ["", before] : [id, `${id}\u0000`];
    const range = [to < before ? to : before, from, limit] as const;
    return (originalPath === undefined
      ? this.#page.all(number, ...range)
      : this.#byPath.all(number, originalPath, ...range)) as unknown as Row[];
  }

  #item(root: TrashRoot, row: Row, parents: Parents): ListedTrashItem {
    const { id, originalPath, sizeBytes, trashedAtMs } = row;
    return {
      id,
      kind: row.kind === KIND_DIRECTORY ? "directory" : "file",
      originalPath,
      sizeBytes,
      inodeCount: 1 + row.treeInodes,
      trashedAtMs,
      trashedBy: row.trashedBy ?? root.owner,
      formerShares: formerSharesOf(this.#formerShares, numberOf(root), row),
      parentExists: parents.exists(originalPath.slice(0, originalPath.lastIndexOf("/"))),
    };
  }
}

/** Bytes of an item's texts in an answer, where each former share has its whole path. */
function bytesOf({ originalPath, formerShares }: ListedTrashItem): number {
  const ownBytes = Buffer.byteLength(originalPath);
  const below = formerShares.map(({ names, username }) => [...names, username].join("/"));
  return below.reduce((sum, text) => sum + ownBytes + 1 + Buffer.byteLength(text), ownBytes);
}

/** Looks up whether folders exist, each once for a page. */
class Parents {
  readonly #child: StatementSync;
  readonly #directoryId: InodeId;
  readonly #known = new Map<string, boolean>();
  /** Names looked up so far. */
  lookups = 0;

  constructor(child: StatementSync, directoryId: InodeId) {
    this.#child = child;
    this.#directoryId = directoryId;
  }

  exists(path: string): boolean {
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    const exists = this.#isDirectory(path.split("/").slice(1));
    this.#known.set(path, exists);
    return exists;
  }

  #isDirectory(names: readonly string[]): boolean {
    let at = this.#directoryId;
    for (const name of names) {
      this.lookups++;
      const row = this.#child.get(at, name) as { id: InodeId; kind: number } | undefined;
      if (row === undefined || row.kind !== KIND_DIRECTORY) return false;
      at = row.id;
    }
    return true;
  }
}

function numberOf(root: TrashRoot): number {
  return rootNumberOf(root.directoryId);
}

/** Sorts after every id. */
const END = String.fromCharCode(0xffff);

function tokenOf(number: number, id: string): string {
  return Buffer.from(JSON.stringify([number, id])).toString("base64url");
}

function readToken(token: string, number: number): string {
  if (token === "") return END;
  try {
    if (token.length > TOKEN_MAX_LENGTH) throw new Error("too long");
    const parts: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (!Array.isArray(parts) || parts.length !== 2 || parts[0] !== number)
      throw new Error("of another root");
    const id: unknown = parts[1];
    if (typeof id !== "string") throw new Error("no id");
    return id;
  } catch {
    throw new GroveError("BAD_ARGUMENT", "this page token does not belong to this trash");
  }
}
