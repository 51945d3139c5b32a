// Commands on the namespace: make, move and remove, each with the sizes of every directory above it.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { CLUSTER_ROOT_NUMBERS_FROM, INLINE_FILE_MAX_BYTES, ROOT_NUMBER_MAX } from "#base/limits.ts";
import { nameProblem } from "#base/names.ts";
import { crc32 } from "#os/crc32.ts";
import { type InodeId, ROOT_STRIDE, rootNumberOf } from "#storage/contract/inode.ts";
import type { ChangeFields, ChangeReply } from "#storage/metadata/change-messages.ts";
import type { ContentRows } from "#storage/metadata/content-rows.ts";
import { holdToPath } from "#storage/metadata/followed-path.ts";
import {
  directoryReply,
  fileReply,
  type InodeRow,
  type InodeRows,
  isDirectory,
  newDirectory,
} from "#storage/metadata/inode-rows.ts";
import type { LinkRows } from "#storage/metadata/link-rows.ts";
import type { LockRows } from "#storage/metadata/lock-rows.ts";
import { KIND_DIRECTORY, KIND_FILE } from "#storage/metadata/schema.ts";
import { pathBelow, type ShareRows, sameGrantsAbove } from "#storage/metadata/share-rows.ts";
import type { TrashBin } from "#storage/metadata/trash-bin.ts";
import { requireDepth, type TreeHeights } from "#storage/metadata/tree-heights.ts";
import {
  type DirectoryState,
  type Ledger,
  noLongerThere,
  type Place,
  type RootState,
  usageOf,
} from "#storage/metadata/unit-of-work.ts";
import { authorOf, pathExists, requireOutside, requireSameKind, requireVersion } from "./entry-words.ts";
import { makeRoom, type Replaced } from "./make-room.ts";
import type {
  CreateDirectoryCommand,
  CreateFileCommand,
  CreateRootCommand,
  RemovalReply,
  RemoveCommand,
  RenameCommand,
  RootReply,
} from "./write-commands.ts";

/** Numbers that one data directory gives out itself; those above are the cluster's. */
const ROOTS_PER_DATA_DIRECTORY: number = CLUSTER_ROOT_NUMBERS_FROM - 1;

/** Commands on names; run one at a time within a transaction. */
export class NamespaceCommands {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #content: ContentRows;
  readonly #bin: TrashBin;
  readonly #shares: ShareRows;
  readonly #heights: TreeHeights;
  readonly #locks: LockRows;
  readonly #links: LinkRows;
  readonly #insertRoot: StatementSync;
  readonly #lastRoot: StatementSync;
  readonly #rootById: StatementSync;
  readonly #rootByNumber: StatementSync;

  constructor(
    db: DatabaseSync,
    rows: {
      ledger: Ledger;
      inodes: InodeRows;
      content: ContentRows;
      bin: TrashBin;
      shares: ShareRows;
      heights: TreeHeights;
      locks: LockRows;
      links: LinkRows;
    },
  ) {
    this.#ledger = rows.ledger;
    this.#inodes = rows.inodes;
    this.#content = rows.content;
    this.#bin = rows.bin;
    this.#shares = rows.shares;
    this.#heights = rows.heights;
    this.#locks = rows.locks;
    this.#links = rows.links;
    this.#insertRoot = db.prepare(
      `INSERT INTO root (number, owner, root_id, directory_id, access_version, live_bytes, trash_bytes, staging_bytes, file_count,
         next_id, grant_count)
       VALUES (?, ?, ?, ?, 1, 0, 0, 0, 0, 2, 0)`,
    );
    this.#lastRoot = db.prepare("SELECT max(number) AS number FROM root WHERE number <= ?");
    this.#rootByNumber = db.prepare("SELECT owner FROM root WHERE number = ?");
    this.#rootById = db.prepare("SELECT owner FROM root WHERE root_id = ?");
  }

  /** Makes a root; a repeated call finds it. */
  createRoot({ owner, rootId, number: given, nowMs }: CreateRootCommand): RootReply {
    const present = this.#ledger.findRoot(owner);
    if (present?.rootId === rootId) return rootReply(present);
    if (present !== undefined || this.#rootById.get(rootId) !== undefined) {
      throw new GroveError(
        "PATH_EXISTS",
        "this user's root, or a root with this id, is on this node already",
      );
    }
    const number = this.#rootNumber(given);
    const directoryId = number * ROOT_STRIDE + 1;
    this.#inodes.insert({
      id: directoryId,
      parentId: null,
      name: "",
      kind: KIND_DIRECTORY,
      size: 0,
      crc32: 0,
      mtimeMs: nowMs,
      ctimeMs: nowMs,
      contentId: null,
      createdBy: null,
    });
    this.#insertRoot.run(number, owner, rootId, directoryId);
    return rootReply(this.#ledger.root(owner));
  }

  /** The cluster's number where it is free here, else the data directory's next. */
  #rootNumber(given: number | undefined): number {
    const isClusters = given !== undefined && given >= CLUSTER_ROOT_NUMBERS_FROM && given <= ROOT_NUMBER_MAX;
    if (isClusters && this.#rootByNumber.get(given) === undefined) return given;
    const { number: last } = this.#lastRoot.get(ROOTS_PER_DATA_DIRECTORY) as { number: number | null };
    const number = (last ?? 0) + 1;
    if (number <= ROOTS_PER_DATA_DIRECTORY) return number;
    throw new GroveError("OVERLOADED", `a data directory holds at most ${ROOTS_PER_DATA_DIRECTORY} roots`, {
      metadata: { limit: String(ROOTS_PER_DATA_DIRECTORY) },
    });
  }

  createDirectory(command: CreateDirectoryCommand): ChangeReply {
    const { root, chain } = this.place(command, command.parentId);
    const { name, nowMs } = command;
    const id = this.#ledger.takeId(root);
    const parentId = chain[0].id;
    const createdBy = authorOf(command);
    const inode = {
      id,
      parentId,
      name,
      kind: KIND_DIRECTORY,
      size: 0,
      crc32: 0,
      mtimeMs: nowMs,
      ctimeMs: nowMs,
    };
    if (!this.#inodes.insert({ ...inode, contentId: null, createdBy })) throw pathExists();
    const state = newDirectory({ id, parentId, name, nowMs, createdBy });
    this.#ledger.addDirectory(state);
    const delta = { bytes: 0, inodes: 1, files: 0 };
    this.#ledger.addToUsage(root, delta);
    this.#ledger.addToChain(chain, delta);
    this.enter(chain, 0, nowMs);
    return directoryReply(state, root, 0);
  }

  createFile(command: CreateFileCommand): ChangeReply {
    const { data, name, nowMs } = command;
    if (data.length > INLINE_FILE_MAX_BYTES) {
      throw new GroveError("BAD_ARGUMENT", `content above ${INLINE_FILE_MAX_BYTES} bytes is uploaded`);
    }
    const place = this.place(command, command.parentId);
    const row = this.insertFile(place, {
      name,
      size: data.length,
      crc32: crc32(data),
      mtimeMs: command.mtimeMs === 0 ? nowMs : command.mtimeMs,
      nowMs,
      contentId: null,
      createdBy: authorOf(command),
    });
    if (row === undefined) throw pathExists();
    this.#content.putInline(row.id, data);
    return fileReply(row, place.root, data.length);
  }

  /** Inserts a file and counts it; undefined when the name is taken. */
  insertFile(
    { root, chain }: Place,
    file: {
      name: string;
      size: number;
      crc32: number;
      mtimeMs: number;
      nowMs: number;
      contentId: number | null;
      createdBy: string | null;
    },
  ): InodeRow | undefined {
    const { nowMs, ...columns } = file;
    const id = this.#ledger.takeId(root);
    const row = { ...columns, id, parentId: chain[0].id, kind: KIND_FILE, ctimeMs: nowMs };
    if (!this.#inodes.insert(row)) return undefined;
    const delta = { bytes: file.size, inodes: 1, files: 1 };
    this.#ledger.addToUsage(root, delta);
    this.#ledger.addToChain(chain, delta);
    this.enter(chain, 0, nowMs);
    return { ...row, version: 1, flags: 0 };
  }

  remove(command: RemoveCommand): RemovalReply {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    const row = this.entry(root, command.inodeId);
    const chain = this.#ledger.chain(root, row.parentId);
    holdToPath(command.at, chain, row.name);
    const removed = this.#removeEntry({ root, chain }, row, command.recursive);
    this.leave(chain, removed.height, command.nowMs);
    return {
      freedBytes: removed.bytes,
      inodeCount: removed.inodes,
      usage: usageOf(root),
      usedDeltaBytes: removed.bytes === 0 ? 0 : -removed.bytes,
    };
  }

  rename(command: RenameCommand): ChangeReply {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    const row = this.entry(root, command.inodeId);
    const moved = isDirectory(row) ? this.#ledger.directory(row.id) : undefined;
    const from = this.#ledger.chain(root, row.parentId);
    holdToPath(command.at, from, row.name);
    requireVersion(this.#ledger, row, command.ifMatch);
    const { chain: to } = this.place({ ...command, at: command.targetAt }, command.parentId);
    if (to.some((state) => state.id === row.id)) {
      throw new GroveError("BAD_ARGUMENT", "a directory cannot be moved into itself");
    }
    requireDepth(to, moved?.height ?? 0, from.length);
    const parentId = to[0].id;
    const target = this.#inodes.byName(parentId, command.name);
    requireVersion(this.#ledger, target, command.targetIfMatch);
    if (target?.id === row.id) {
      return moved === undefined ? fileReply(row, root, 0) : directoryReply(moved, root, 0);
    }
    const { name, freedBytes, excluded } = makeRoom(this.#inodes, command, (present) =>
      this.replace({ root, chain: to }, present, row, command),
    );
    this.#move({ root, row, moved, from, to, name, nowMs: command.nowMs });
    this.#shares.keepOut(root, { inodeId: row.id, path: pathBelow(to, name) }, excluded);
    const usedDeltaBytes = freedBytes === 0 ? 0 : -freedBytes;
    if (moved !== undefined) return directoryReply(moved, root, usedDeltaBytes);
    const changed = { parentId, name, ctimeMs: command.nowMs, version: row.version + 1 };
    return fileReply({ ...row, ...changed }, root, usedDeltaBytes);
  }

  /**
   * Checks a change's root, directory and name. Throws NO_SUCH_PATH, NOT_DIRECTORY, BAD_NAME, and
   * BAD_ARGUMENT for a directory that lies too deep.
   */
  place(change: ChangeFields & { readonly name: string }, parentId: InodeId): Place {
    // Callers pass canonical names; no path could reach any other.
    const problem = nameProblem(change.name);
    if (problem !== undefined) throw new GroveError("BAD_NAME", `bad name: ${problem}`);
    const root = this.#ledger.root(change.owner, change.accessVersion);
    if (rootNumberOf(parentId) !== root.number) throw noLongerThere();
    const chain = this.#ledger.chain(root, parentId);
    requireDepth(chain, 0, 0);
    holdToPath(change.at, chain, change.name);
    return { root, chain };
  }

  /** Updates a chain's first directory for a new entry of this height: its height, times and version. */
  enter(chain: Place["chain"], entryHeight: number, nowMs: number): void {
    this.#renew(chain[0], 1, nowMs);
    this.#heights.came(chain, entryHeight);
  }

  /** Updates a chain's first directory after an entry of this height, and its row, are gone. */
  leave(chain: Place["chain"], entryHeight: number, nowMs: number): void {
    this.#renew(chain[0], -1, nowMs);
    this.#heights.went(chain, entryHeight);
  }

  #renew(directory: DirectoryState, entries: number, nowMs: number): void {
    this.#ledger.touch(directory);
    directory.childCount += entries;
    directory.mtimeMs = nowMs;
    directory.ctimeMs = nowMs;
    directory.version++;
  }

  /** The inode to move or remove. Throws NO_SUCH_PATH, and BAD_ARGUMENT for the root's own directory. */
  entry(root: RootState, id: InodeId): InodeRow & { parentId: InodeId } {
    if (id === root.directoryId) {
      throw new GroveError("BAD_ARGUMENT", "the root directory itself cannot be moved or removed");
    }
    const row = rootNumberOf(id) === root.number ? this.#inodes.byId(id) : undefined;
    if (row === undefined || row.parentId === null) throw noLongerThere();
    return { ...row, parentId: row.parentId };
  }

  #removeEntry(
    { root, chain }: Place,
    row: InodeRow,
    recursive: boolean,
  ): { bytes: number; inodes: number; height: number } {
    const state = isDirectory(row) ? this.#ledger.directory(row.id) : undefined;
    if (state !== undefined && state.childCount > 0 && !recursive) {
      throw new GroveError("NOT_EMPTY", "the directory is not empty", {
        metadata: { entries: String(state.childCount) },
      });
    }
    const bytes = state?.size ?? row.size;
    const inodes = 1 + (state?.treeInodes ?? 0);
    const files = state === undefined ? 1 : state.treeFiles;
    if (root.grantCount > 0) this.#shares.takeBelow(root, pathBelow(chain, row.name));
    this.#locks.dropBelow(root, row.id);
    this.#links.dropBelow(root, row.id, state !== undefined && state.childCount > 0);
    if (state !== undefined && state.childCount > 0) {
      this.#ledger.touch(state);
      state.parentId = null;
      this.#inodes.properties.drop(root, row.id);
      this.#inodes.detach(row.id);
    } else {
      this.#inodes.delete(row, root);
    }
    this.#ledger.count({ inodes: -inodes });
    const delta = { bytes: -bytes, inodes: -inodes, files: -files };
    this.#ledger.addToUsage(root, delta);
    this.#ledger.addToChain(chain, delta);
    return { bytes, inodes, height: state?.height ?? 0 };
  }

  /**
   * Removes the target of a replacing move: for good by the owner, into the trash by another user (D13), or where that
   * is asked for. Another entry takes its place in the same command, and is kept from whom it was kept.
   */
  replace(
    place: Place,
    target: InodeRow,
    source: InodeRow,
    change: ChangeFields & { readonly onConflict: string },
  ): Replaced {
    const isTrashed = change.onConflict === "trash";
    if (!isTrashed) requireSameKind(source, target);
    else if (source.parentId !== null)
      requireOutside(this.#ledger.chain(place.root, source.parentId), target);
    const excluded = this.#shares.excludedAt(place.root, pathBelow(place.chain, target.name));
    const height = isDirectory(target) ? (this.#ledger.directory(target.id)?.height ?? 0) : 0;
    const isKept = isTrashed || (change.by !== change.owner && !isDirectory(target));
    if (isKept) {
      this.#locks.dropBelow(place.root, target.id);
      this.#links.dropBelow(place.root, target.id, isDirectory(target));
      this.#bin.keepEntry(place, target, change);
    }
    const freedBytes = isKept ? 0 : this.#removeEntry(place, target, false).bytes;
    this.#ledger.touch(place.chain[0]);
    place.chain[0].childCount--;
    // What is removed for good has nothing below it, so that no height falls.
    if (isTrashed) this.#heights.went(place.chain, height);
    return { freedBytes, excluded };
  }

  #move(move: {
    root: RootState;
    row: InodeRow;
    moved: DirectoryState | undefined;
    from: Place["chain"];
    to: Place["chain"];
    name: string;
    nowMs: number;
  }): void {
    const { root, row, moved, from, to, name, nowMs } = move;
    const parentId = to[0].id;
    const version = (moved?.version ?? row.version) + 1;
    this.#locks.dropBelow(root, row.id);
    this.#shares.moved(root, pathBelow(from, row.name), pathBelow(to, name));
    this.#inodes.rename(row.id, { parentId, name, ctimeMs: nowMs, version });
    if (moved !== undefined) {
      this.#ledger.touch(moved);
      Object.assign(moved, { parentId, name, ctimeMs: nowMs, version });
    }
    if (from[0].id === parentId) {
      this.#renew(from[0], 0, nowMs);
      return;
    }
    const bytes = moved?.size ?? row.size;
    const inodes = 1 + (moved?.treeInodes ?? 0);
    const files = moved === undefined ? 1 : moved.treeFiles;
    this.#ledger.addToChain(from, { bytes: -bytes, inodes: -inodes, files: -files });
    this.#ledger.addToChain(to, { bytes, inodes, files });
    const height = moved?.height ?? 0;
    this.enter(to, height, nowMs);
    this.leave(from, height, nowMs);
    // Where the same shares hold as before, access stays the same.
    if (root.grantCount > 0 && !sameGrantsAbove(from, to)) {
      this.#ledger.touchRoot(root);
      root.accessVersion++;
    }
  }
}

function rootReply(root: RootState): RootReply {
  const { owner, rootId, directoryId, accessVersion, lockVersion, lockCount } = root;
  return { owner, rootId, directoryId, accessVersion, lockVersion, lockCount, usage: usageOf(root) };
}
