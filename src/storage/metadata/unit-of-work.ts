// Directories, roots and counters of the running transaction: kept in memory, written once before its commit.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { IDS_PER_ROOT } from "#base/limits.ts";
import { type InodeId, ROOT_STRIDE, StaleAccessError, type Usage } from "#storage/contract/inode.ts";
import type { TakenLock } from "#storage/contract/locks.ts";
import type { StorageFacts } from "#storage/contract/storage.ts";
import { type CounterState, readCounters } from "./data-counters.ts";
import { requireExact } from "./exact-sums.ts";
import { FrozenRoots } from "./frozen-roots.ts";
import { KIND_DIRECTORY, STORAGE_CACHED_DIRECTORIES } from "./schema.ts";

/** Old moves could pass the depth that a path can name; a longer chain is a circle in a damaged database. */
export const CHAIN_MAX = 1_000_000;

/** A directory's row in memory. Change it only after `touch`. */
export interface DirectoryState {
  readonly id: InodeId;
  parentId: InodeId | null;
  name: string;
  size: number;
  childCount: number;
  treeInodes: number;
  treeFiles: number;
  /** Levels below it; only TreeHeights changes it. */
  height: number;
  mtimeMs: number;
  ctimeMs: number;
  version: number;
  flags: number;
  readonly createdBy: string | null;
  savedFor: number;
}

/** A root's row in memory. Change it only after `touch`. */
export interface RootState {
  readonly number: number;
  readonly owner: string;
  readonly rootId: string;
  readonly directoryId: InodeId;
  accessVersion: number;
  liveBytes: number;
  trashBytes: number;
  stagingBytes: number;
  fileCount: number;
  liveInodes: number;
  trashInodes: number;
  nextId: number;
  grantCount: number;
  lockVersion: number;
  lockCount: number;
  /** Those taken last, never changed in place. */
  latestLocks: readonly TakenLock[];
  propertyBytes: number;
  savedFor: number;
}

/** Amounts added below a directory. */
export interface TreeDelta {
  readonly bytes: number;
  readonly inodes: number;
  readonly files: number;
}

/** Place of a new entry: its root and the directories above it. */
export interface Place {
  readonly root: RootState;
  readonly chain: readonly [DirectoryState, ...DirectoryState[]];
}

const DIRECTORY_COLUMNS = `id, parent_id AS parentId, name, kind, size, child_count AS childCount, tree_inodes AS treeInodes,
  tree_files AS treeFiles, height, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, version, flags, created_by AS createdBy`;
const ROOT_COLUMNS = `number, owner, root_id AS rootId, directory_id AS directoryId, access_version AS accessVersion,
  live_bytes AS liveBytes, trash_bytes AS trashBytes, staging_bytes AS stagingBytes, file_count AS fileCount,
  live_inodes AS liveInodes, trash_inodes AS trashInodes, next_id AS nextId, grant_count AS grantCount,
  lock_version AS lockVersion, lock_count AS lockCount, property_bytes AS propertyBytes`;

/**
 * The writer's state of directories, roots and counters: `rollback` undoes a command, `discard` a
 * transaction. Committed state stays valid for the next transaction, since no other process writes.
 */
export class Ledger {
  readonly #selectDirectory: StatementSync;
  readonly #putDirectory: StatementSync;
  readonly #selectRoot: StatementSync;
  readonly #selectRootByNumber: StatementSync;
  readonly #updateRoot: StatementSync;
  readonly #updateCounter: StatementSync;
  readonly #db: DatabaseSync;
  readonly #directories = new Map<InodeId, DirectoryState>();
  readonly #roots = new Map<string, RootState>();
  readonly #dirtyDirectories = new Set<DirectoryState>();
  readonly #dirtyRoots = new Set<RootState>();
  #counters: CounterState;
  #countersDirty = false;
  #command = 1;
  #undo: (() => void)[] = [];
  /** Numbers of roots that change no more until their move goes on or is undone. */
  readonly frozen: FrozenRoots;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#selectDirectory = db.prepare(`SELECT ${DIRECTORY_COLUMNS} FROM inode WHERE id = ?`);
    this.#putDirectory = db.prepare(
      `UPDATE inode SET size = ?, child_count = ?, tree_inodes = ?, tree_files = ?, mtime_ms = ?, ctime_ms = ?, version = ?, flags = ?
       WHERE id = ?`,
    );
    this.#selectRoot = db.prepare(`SELECT ${ROOT_COLUMNS} FROM root WHERE owner = ?`);
    this.#selectRootByNumber = db.prepare("SELECT owner FROM root WHERE number = ?");
    this.#updateRoot = db.prepare(
      `UPDATE root SET access_version = ?, live_bytes = ?, trash_bytes = ?, staging_bytes = ?, file_count = ?,
         live_inodes = ?, trash_inodes = ?, next_id = ?, grant_count = ?, lock_version = ?, lock_count = ?, property_bytes = ? WHERE number = ?`,
    );
    this.#updateCounter = db.prepare(
      "INSERT INTO counter (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    );
    this.#counters = readCounters(db);
    this.frozen = new FrozenRoots(db, (undo) => this.#undo.push(undo));
  }

  /** Begins a command: `rollback` undoes its changes together. */
  begin(): void {
    this.#command++;
    this.#undo.length = 0;
  }

  /** Undoes the command's changes. */
  rollback(): void {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) undo();
  }

  /** Writes the transaction's changes; call it right before the commit. */
  flush(): void {
    for (const state of this.#dirtyDirectories) {
      const { size, childCount, treeInodes, treeFiles, mtimeMs, ctimeMs, version, flags, id } = state;
      this.#putDirectory.run(size, childCount, treeInodes, treeFiles, mtimeMs, ctimeMs, version, flags, id);
    }
    for (const root of this.#dirtyRoots) this.#writeRoot(root);
    if (this.#countersDirty) {
      this.#updateCounter.run("inodes", this.#counters.inodeCount);
      this.#updateCounter.run("chunks", this.#counters.chunkCount);
      this.#updateCounter.run("trash_bytes", this.#counters.trashBytes);
    }
  }

  /** Keeps the state of the committed transaction. */
  committed(): void {
    this.#forgetDirty();
    if (this.#directories.size > STORAGE_CACHED_DIRECTORIES) this.#directories.clear();
    if (this.#roots.size > STORAGE_CACHED_DIRECTORIES) this.#roots.clear();
  }

  /** Forgets the state of the rolled back transaction; the database is read again. */
  discard(): void {
    this.#forgetDirty();
    this.#directories.clear();
    this.#roots.clear();
    this.#counters = readCounters(this.#db);
  }

  /** The counters as the transaction leaves them. */
  facts(): StorageFacts {
    const { inodeCount, chunkCount, trashBytes } = this.#counters;
    return { inodeCount, chunkCount, trashBytes: Number(trashBytes), stagingBytes: 0 };
  }

  /** Chunks whose files wait for their removal. */
  get garbageCount(): number {
    return this.#counters.garbageCount;
  }

  /** Adds to the counters of the data directory. */
  count(delta: {
    readonly inodes?: number;
    readonly chunks?: number;
    readonly garbage?: number;
    readonly trashBytes?: number;
  }): void {
    const counters = this.#counters;
    this.#save(counters);
    this.#countersDirty = true;
    counters.inodeCount += delta.inodes ?? 0;
    counters.chunkCount += delta.chunks ?? 0;
    counters.garbageCount += delta.garbage ?? 0;
    counters.trashBytes += BigInt(delta.trashBytes ?? 0);
  }

  /** The root of a user; undefined when it is missing. */
  findRoot(owner: string): RootState | undefined {
    const known = this.#roots.get(owner);
    if (known !== undefined) return known;
    const row = this.#selectRoot.get(owner) as Omit<RootState, "latestLocks" | "savedFor"> | undefined;
    if (row === undefined) return undefined;
    const root: RootState = { ...row, latestLocks: [], savedFor: 0 };
    this.#roots.set(owner, root);
    return root;
  }

  /** The root to change. Throws NO_SUCH_PATH, and StaleAccessError for another access version. */
  root(owner: string, accessVersion?: number): RootState {
    const root = this.findRoot(owner);
    if (root === undefined) throw new GroveError("NO_SUCH_PATH", "there is no such root on this node");
    if (accessVersion !== undefined && root.accessVersion !== accessVersion) {
      throw new StaleAccessError("who may reach what has changed; check again and repeat");
    }
    this.frozen.requireChangeable(root.number);
    return root;
  }

  /** Forgets a root whose row the command has changed or deleted; its changes of before are written. */
  forgetRoot(owner: string): void {
    const root = this.#roots.get(owner);
    if (root === undefined) return;
    const wasDirty = this.#dirtyRoots.delete(root);
    if (wasDirty) this.#writeRoot(root);
    this.#roots.delete(owner);
    this.#undo.push(() => {
      this.#roots.set(owner, root);
      if (wasDirty) this.#dirtyRoots.add(root);
    });
  }

  /** The root under which an id was made; undefined for an unused id. */
  rootOfId(id: number): RootState | undefined {
    const row = this.#selectRootByNumber.get(Math.floor(id / ROOT_STRIDE)) as { owner: string } | undefined;
    return row === undefined ? undefined : this.findRoot(row.owner);
  }

  /** Takes the next id of a root. Throws BAD_ARGUMENT when all are used up. */
  takeId(root: RootState): number {
    if (root.nextId > IDS_PER_ROOT) {
      throw new GroveError(
        "BAD_ARGUMENT",
        "this root has used up its inode numbers; move its files to a new root",
      );
    }
    this.touchRoot(root);
    return root.number * ROOT_STRIDE + root.nextId++;
  }

  /** A directory's current state; undefined when it is missing. */
  directory(id: InodeId): DirectoryState | undefined {
    const known = this.#directories.get(id);
    if (known !== undefined) return known;
    const row = this.#selectDirectory.get(id) as
      | (Omit<DirectoryState, "savedFor"> & { kind: number })
      | undefined;
    if (row === undefined || row.kind !== KIND_DIRECTORY) return undefined;
    const { kind: _, ...columns } = row;
    const state: DirectoryState = { ...columns, savedFor: 0 };
    this.#directories.set(id, state);
    return state;
  }

  /** Directories up to the root's own. Throws NO_SUCH_PATH outside of that root, NOT_DIRECTORY for a file. */
  chain(root: RootState, directoryId: InodeId): [DirectoryState, ...DirectoryState[]] {
    const first = this.directory(directoryId);
    if (first === undefined) throw this.#whyNoDirectory(root, directoryId);
    const chain: [DirectoryState, ...DirectoryState[]] = [first];
    for (let state = first; state.id !== root.directoryId; ) {
      const parent = state.parentId === null ? undefined : this.directory(state.parentId);
      if (parent === undefined || chain.length > CHAIN_MAX) throw noLongerThere();
      chain.push(parent);
      state = parent;
    }
    return chain;
  }

  /** A file in the tree is NOT_DIRECTORY; a row that outlives its removed tree is NO_SUCH_PATH. */
  #whyNoDirectory(root: RootState, id: InodeId): GroveError {
    const row = this.#selectDirectory.get(id) as { parentId: InodeId | null } | undefined;
    if (row === undefined || row.parentId === null) return noLongerThere();
    this.chain(root, row.parentId);
    return new GroveError("NOT_DIRECTORY", "not a directory");
  }

  /** Adds a directory that the command has just inserted. */
  addDirectory(state: DirectoryState): void {
    this.#directories.set(state.id, state);
    this.#undo.push(() => {
      this.#directories.delete(state.id);
      this.#dirtyDirectories.delete(state);
    });
  }

  /** Drops a directory whose row the command has deleted. */
  dropDirectory(id: InodeId): void {
    const state = this.#directories.get(id);
    if (state === undefined) return;
    const wasDirty = this.#dirtyDirectories.delete(state);
    this.#directories.delete(id);
    this.#undo.push(() => {
      this.#directories.set(id, state);
      if (wasDirty) this.#dirtyDirectories.add(state);
    });
  }

  /** Announces a change of a directory's state. */
  touch(state: DirectoryState): void {
    this.#save(state);
    this.#mark(this.#dirtyDirectories, state);
  }

  /** Announces a change of a root's state. */
  touchRoot(root: RootState): void {
    this.#save(root);
    this.#mark(this.#dirtyRoots, root);
  }

  /** Adds to every directory of a chain. */
  addToChain(chain: readonly DirectoryState[], delta: TreeDelta): void {
    for (const state of chain) {
      this.touch(state);
      state.size += delta.bytes;
      state.treeInodes += delta.inodes;
      state.treeFiles += delta.files;
    }
  }

  /** Adds to a root's live amounts. Throws BAD_ARGUMENT when its bytes would pass the exact range of 2^53. */
  addToUsage(root: RootState, delta: TreeDelta): void {
    requireExact(root, delta.bytes);
    this.touchRoot(root);
    root.liveBytes += delta.bytes;
    root.fileCount += delta.files;
    root.liveInodes += delta.inodes;
  }

  /** Adds to the amounts in a root's trash. `addToUsage` subtracts them from the live ones. */
  addToTrash(root: RootState, { bytes, inodes }: Pick<TreeDelta, "bytes" | "inodes">): void {
    this.touchRoot(root);
    root.trashBytes += bytes;
    root.trashInodes += inodes;
    this.count({ trashBytes: bytes });
  }

  /** Adds to a root's staged bytes, or to those of its properties. Throws BAD_ARGUMENT like addToUsage. */
  addBytes(root: RootState, of: "propertyBytes" | "stagingBytes", bytes: number): void {
    requireExact(root, bytes);
    this.touchRoot(root);
    root[of] += bytes;
  }

  #writeRoot(root: RootState): void {
    this.#updateRoot.run(
      root.accessVersion,
      root.liveBytes,
      root.trashBytes,
      root.stagingBytes,
      root.fileCount,
      root.liveInodes,
      root.trashInodes,
      root.nextId,
      root.grantCount,
      root.lockVersion,
      root.lockCount,
      root.propertyBytes,
      root.number,
    );
  }

  #save(state: DirectoryState | RootState | CounterState): void {
    if (state.savedFor === this.#command) return;
    const before = { ...state };
    state.savedFor = this.#command;
    this.#undo.push(() => Object.assign(state, before));
  }

  /** What a command that is undone has marked alone is not written: no row of it has changed. */
  #mark<State>(dirty: Set<State>, state: State): void {
    if (dirty.has(state)) return;
    dirty.add(state);
    this.#undo.push(() => dirty.delete(state));
  }

  #forgetDirty(): void {
    this.#dirtyDirectories.clear();
    this.#dirtyRoots.clear();
    this.#countersDirty = false;
    this.#undo.length = 0;
  }
}

/** A root's usage as callers see it. */
export function usageOf(root: RootState): Usage {
  const { propertyBytes, trashBytes, stagingBytes, fileCount, liveInodes, trashInodes } = root;
  const liveBytes = root.liveBytes + propertyBytes;
  return { liveBytes, trashBytes, stagingBytes, fileCount, liveInodes, trashInodes };
}

/** The refusal of a change to an inode that was removed or moved out of reach. */
export function noLongerThere(): GroveError {
  return new GroveError("NO_SUCH_PATH", "no such file or directory");
}
