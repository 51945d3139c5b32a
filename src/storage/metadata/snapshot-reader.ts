// Reads of the namespace on the main thread: synchronous, from one snapshot per turn of the event loop.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import type { ChunkList } from "#storage/chunks/chunk-pins.ts";
import type { Inode, InodeId } from "#storage/contract/inode.ts";
import { rootNumberOf } from "#storage/contract/inode.ts";
import type { ListPage, ListQuery, Resolution, RootRecord } from "#storage/contract/storage.ts";
import type { TrashHead, TrashPage, TrashQuery } from "#storage/contract/trash.ts";
import type { ChunkRecord, ContentRecord, Positions } from "./content-records.ts";
import {
  ENTRY_COLUMNS,
  type EntryRow,
  entryHasGrants,
  entryInode,
  hasGrants,
  isEntryDirectory,
  type Row,
  SELECT_INLINE,
  toInode,
} from "./inode-columns.ts";
import {
  INODE_BY_ID,
  limitOf,
  listable,
  listPage,
  noSuchInode,
  ownShares,
  type ReadInode,
  reachable,
  SHARES_OF_INODE,
} from "./list-page.ts";
import { type ListingOrder, listingSql } from "./listing-sql.ts";
import { DEPARTED } from "./moved-roots.ts";
import { readPageToken, sortOf } from "./page-token.ts";
import { KIND_DIRECTORY, openReader } from "./schema.ts";
import { type ShareRow, usersLetIn } from "./share-resolution.ts";
import { isBrokenDatabase } from "./sqlite-errors.ts";
import { TrashReader } from "./trash-reader.ts";

/** Roots and directories that reads keep in memory until the next commit. */
const READ_CACHE_ENTRIES = 8_192;

/** Reads of other tables in the same snapshot. */
export interface SnapshotTables {
  /** Prepares a statement whose rows come as arrays. */
  prepare(sql: string): StatementSync;
  /** Runs reads within the snapshot of this turn of the event loop. */
  read<T>(read: () => T): T;
}

type Three = [number, number, number];
type RootRow = [string, string, ...Three, ...Three, ...Three, number, number];

interface CachedDirectory {
  readonly inode: Inode;
  readonly hasGrants: boolean;
}

interface CachedRoot {
  readonly root: RootRecord;
  readonly directory: CachedDirectory;
}

/** Owns the connection that reads. Reports a broken database to `broken` and reads on as far as possible. */
export class SnapshotReader {
  readonly #db: DatabaseSync;
  readonly #broken: (error: unknown) => void;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  readonly #child: StatementSync;
  readonly #inode: StatementSync;
  readonly #root: StatementSync;
  readonly #roots: StatementSync;
  readonly #grants: StatementSync;
  readonly #inline: StatementSync;
  readonly #content: StatementSync;
  readonly #positions: StatementSync;
  readonly #positionsWithin: StatementSync;
  readonly #chunk: StatementSync;
  readonly #garbage: StatementSync;
  readonly #below: StatementSync;
  readonly #dataVersion: StatementSync;
  readonly #trash: TrashReader;
  readonly #listings = new Map<string, StatementSync>();
  /** Owners by root number; cleared after one is renamed. */
  readonly owners = new Map<number, string>();
  #isHeld = false;
  /** The file that the last path in this snapshot led to: it can be reached from its root. */
  #resolvedFile: Inode | undefined;
  #isClosed = false;
  /** Roots and directories read at this version of the database; cleared with it, so snapshots never mix. */
  #cachedVersion = -1;
  #cachedEntries = 0;
  readonly #cachedRoots = new Map<string, CachedRoot>();
  readonly #cachedDirectories = new Map<InodeId, Map<string, CachedDirectory>>();

  /** Takes a path, or a connection of its own that it closes. */
  constructor(source: string | DatabaseSync, broken: (error: unknown) => void) {
    this.#db = typeof source === "string" ? openReader(source) : source;
    this.#broken = broken;
    this.#trash = new TrashReader(this.#db);
    this.#begin = this.#db.prepare("BEGIN");
    this.#end = this.#db.prepare("COMMIT");
    this.#dataVersion = this.#prepare("PRAGMA data_version");
    this.#child = this.#prepare(`SELECT ${ENTRY_COLUMNS} FROM inode WHERE parent_id = ? AND name = ?`);
    this.#inode = this.#prepare(INODE_BY_ID);
    const root = `SELECT owner, root_id, directory_id, access_version, number, live_bytes + property_bytes, trash_bytes, staging_bytes,
      file_count, live_inodes, trash_inodes, lock_version, lock_count FROM root`;
    this.#root = this.#prepare(`${root} WHERE owner = ?`);
    // A root that has moved away waits here under a name that no user has.
    this.#roots = this.#prepare(`${root} WHERE owner NOT GLOB '${DEPARTED}*' ORDER BY number`);
    this.#grants = this.#prepare(SHARES_OF_INODE);
    this.#inline = this.#prepare(SELECT_INLINE);
    this.#content = this.#prepare(
      `SELECT content_id, CAST(data AS BLOB) FROM inode LEFT JOIN inline_content ON inode_id = id WHERE id = ?`,
    );
    this.#positions = this.#prepare(
      "SELECT position, chunk_id FROM file_chunk WHERE content_id = ? ORDER BY position",
    );
    this.#positionsWithin = this.#prepare(
      `SELECT position, chunk_id FROM file_chunk WHERE content_id = ? AND position >= ? AND position < ?
       ORDER BY position`,
    );
    this.#chunk = this.#prepare("SELECT id, name, length, crc32, block_crcs FROM chunk WHERE id = ?");
    this.#below = this.#prepare("SELECT tree_inodes FROM inode WHERE id = ?");
    this.#garbage = this.#prepare(
      `SELECT garbage.sequence, chunk.id, chunk.name FROM garbage JOIN chunk ON chunk.id = garbage.chunk_id
       WHERE garbage.sequence > ? ORDER BY garbage.sequence LIMIT ?`,
    );
  }

  /** Access for readers of other tables. */
  get tables(): SnapshotTables {
    return { prepare: (sql) => this.#prepare(sql), read: (read) => this.#read(read) };
  }

  /** Ends the held snapshot: the next read sees later commits. */
  renew(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#resolvedFile = undefined;
    try {
      this.#end.run();
    } catch (error) {
      if (!isBrokenDatabase(error)) throw error;
      this.#broken(error);
    }
  }

  close(): void {
    this.renew();
    this.#isClosed = true;
    this.#db.close();
  }

  root(owner: string): RootRecord | undefined {
    return this.#read(() => {
      const row = this.#root.get(owner) as RootRow | undefined;
      return row === undefined ? undefined : this.#toRoot(row);
    });
  }

  roots(): RootRecord[] {
    return this.#read(() => (this.#roots.all() as unknown as RootRow[]).map((row) => this.#toRoot(row)));
  }

  resolve(owner: string, names: readonly string[]): Resolution {
    return this.#read(() => {
      const cached = this.#cachedRoots.get(owner) ?? this.#loadRoot(owner);
      let parent: CachedDirectory = cached.directory;
      const chain: [Inode, ...Inode[]] = [parent.inode];
      const granted = parent.hasGrants ? [parent.inode.id] : [];
      let depth = 0;
      for (; depth < names.length; depth++) {
        const name = names[depth] ?? "";
        const known = this.#cachedDirectories.get(parent.inode.id)?.get(name);
        if (known !== undefined) {
          parent = known;
          chain.push(known.inode);
          if (known.hasGrants) granted.push(known.inode.id);
          continue;
        }
        const row = this.#child.get(parent.inode.id, name) as EntryRow | undefined;
        if (row === undefined) break;
        const child = { inode: entryInode(row, parent.inode.id, owner), hasGrants: entryHasGrants(row) };
        chain.push(child.inode);
        if (child.hasGrants) granted.push(child.inode.id);
        if (!isEntryDirectory(row)) {
          this.#resolvedFile = child.inode;
          depth++;
          break;
        }
        this.#remember(parent.inode.id, name, child);
        parent = child;
      }
      const shared = usersLetIn(granted, this.#sharesOn);
      return { root: cached.root, chain, missing: names.slice(depth), shared };
    });
  }

  #loadRoot(owner: string): CachedRoot {
    const rootRow = this.#root.get(owner) as RootRow | undefined;
    if (rootRow === undefined) throw new GroveError("NO_SUCH_PATH", "there is no such root on this node");
    const root = this.#toRoot(rootRow);
    const row = this.#inode.get(root.directoryId) as unknown as Row;
    const cached = { root, directory: { inode: toInode(row, owner), hasGrants: hasGrants(row) } };
    this.#makeRoom();
    this.#cachedRoots.set(owner, cached);
    return cached;
  }

  #remember(parentId: InodeId, name: string, directory: CachedDirectory): void {
    this.#makeRoom();
    const siblings = this.#cachedDirectories.get(parentId);
    if (siblings === undefined) this.#cachedDirectories.set(parentId, new Map([[name, directory]]));
    else siblings.set(name, directory);
  }

  #makeRoom(): void {
    if (++this.#cachedEntries > READ_CACHE_ENTRIES) this.#forget();
  }

  #forget(): void {
    this.#cachedEntries = 0;
    this.#cachedRoots.clear();
    this.#cachedDirectories.clear();
  }

  list(directoryId: InodeId, query: ListQuery): ListPage {
    return this.#read(() => {
      const { hiddenFrom } = query;
      const owner = this.#ownerOf(directoryId);
      if (owner === undefined) throw noSuchInode();
      listable(this.#row, directoryId, query);
      const [by, isDescending] = sortOf(query.sort);
      const after = readPageToken(query.pageToken, directoryId, query.sort);
      const [isContinued, isFiltered] = [after !== undefined, hiddenFrom !== undefined];
      const statement = this.#listing({ by, isDescending, isContinued, isFiltered });
      const from =
        after === undefined ? [] : by === "name" ? [after.name] : [after.value, after.value, after.name];
      const hidden = hiddenFrom === undefined ? [] : [hiddenFrom];
      const values = [directoryId, ...from, ...hidden, limitOf(query) + 1];
      const rows = statement.all(...values) as unknown as EntryRow[];
      const own = ownShares(rows, this.#grants);
      return listPage({ rows, own }, directoryId, query, owner);
    });
  }

  /** A file that is reachable from its root. Throws NO_SUCH_PATH and IS_DIRECTORY. */
  file(fileId: InodeId): ContentRecord {
    return this.#read(() => {
      const owner = this.#ownerOf(fileId);
      if (owner === undefined) throw noSuchInode();
      const row = reachable(this.#row, fileId);
      if (row[3] === KIND_DIRECTORY) throw new GroveError("IS_DIRECTORY", "a directory has no content");
      return { inode: toInode(row, owner), contentId: row[12] ?? undefined };
    });
  }

  /** The same with a small file's bytes; cheaper for the file that a path has just led to. */
  content(fileId: InodeId): ContentRecord {
    return this.#read(() => {
      const inode = this.#resolvedFile?.id === fileId ? this.#resolvedFile : this.file(fileId).inode;
      const row = this.#content.get(fileId) as [number | null, Uint8Array | null] | undefined;
      return { inode, contentId: row?.[0] ?? undefined, inline: row?.[1] ?? undefined };
    });
  }

  listTrash(owner: string, query: TrashQuery): TrashPage {
    return this.#read(() =>
      this.#trash.list((this.#cachedRoots.get(owner) ?? this.#loadRoot(owner)).root, query),
    );
  }

  trashBefore(timeMs: number, limit: number): TrashHead[] {
    return this.#read(() => this.#trash.before(timeMs, limit));
  }

  oldestTrash(owner: string, beforeMs: number, limit: number): TrashHead[] {
    return this.#read(() =>
      this.#trash.oldest((this.#cachedRoots.get(owner) ?? this.#loadRoot(owner)).root, beforeMs, limit),
    );
  }

  inline(fileId: InodeId): Uint8Array {
    return this.#read(() => {
      const row = this.#inline.get(fileId) as [Uint8Array] | undefined;
      return row?.[0] ?? new Uint8Array(0);
    });
  }

  /** Inodes below a directory, 0 for any other inode. */
  inodesBelow(id: InodeId): number {
    return this.#read(() => (this.#below.get(id) as [number] | undefined)?.[0] ?? 0);
  }

  /** The chunks of a content list, or those between two positions, the second one excluded. */
  chunkList(contentId: number, within?: Positions): ChunkList {
    return this.#read(() => {
      const found =
        within === undefined
          ? this.#positions.all(contentId)
          : this.#positionsWithin.all(contentId, within.from, within.below);
      const rows = found as unknown as [number, number][];
      return {
        positions: Float64Array.from(rows, ([position]) => position),
        chunkIds: Float64Array.from(rows, ([, id]) => id),
      };
    });
  }

  chunk(id: number): ChunkRecord | undefined {
    return this.#read(() => {
      const row = this.#chunk.get(id) as [number, string, number, number, Uint8Array] | undefined;
      if (row === undefined) return undefined;
      return { id: row[0], name: row[1], length: row[2], crc32: row[3], blockCrcs: row[4] };
    });
  }

  /** The next chunks whose files are to be unlinked, in order of sequence number. */
  garbage(afterSequence: number, limit: number): { sequence: number; id: number; name: string }[] {
    return this.#read(() =>
      (this.#garbage.all(afterSequence, limit) as unknown as [number, number, string][]).map(
        ([sequence, id, name]) => ({ sequence, id, name }),
      ),
    );
  }

  /** Runs reads within the snapshot of this turn of the event loop. */
  #read<T>(read: () => T): T {
    if (this.#isClosed) throw new GroveError("STORAGE_FAILED", "the store is closed");
    try {
      if (!this.#isHeld) {
        this.#begin.run();
        this.#isHeld = true;
        const [version] = this.#dataVersion.get() as unknown as [number];
        if (version !== this.#cachedVersion) this.#forget();
        this.#cachedVersion = version;
        // Ends with this turn: a held snapshot keeps the log from being emptied.
        setImmediate(() => this.renew());
      }
      return read();
    } catch (error) {
      if (!isBrokenDatabase(error)) throw error;
      this.#broken(error);
      throw new GroveError("CORRUPT", "the database of this node is damaged", { cause: error });
    }
  }

  readonly #sharesOn = (id: InodeId): ShareRow[] => this.#grants.all(id) as unknown as ShareRow[];

  readonly #row: ReadInode = (id) => this.#inode.get(id) as Row | undefined;

  #ownerOf(id: InodeId): string | undefined {
    const number = rootNumberOf(id);
    if (!this.owners.has(number)) this.roots();
    return this.owners.get(number);
  }

  #toRoot(row: RootRow): RootRecord {
    const [owner, rootId, directoryId, accessVersion, number, ...counts] = row;
    const [liveBytes, trashBytes, stagingBytes, fileCount, liveInodes, trashInodes, ...locks] = counts;
    const [lockVersion, lockCount] = locks;
    const usage = { liveBytes, trashBytes, stagingBytes, fileCount, liveInodes, trashInodes };
    this.owners.set(number, owner);
    return { owner, rootId, directoryId, accessVersion, lockVersion, lockCount, usage };
  }

  #listing(order: ListingOrder): StatementSync {
    const sql = listingSql(order);
    const statement = this.#listings.get(sql) ?? this.#prepare(sql);
    this.#listings.set(sql, statement);
    return statement;
  }

  #prepare(sql: string): StatementSync {
    const statement = this.#db.prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  }
}
