// Commands on the trash: trash, restore and purge, each in one step at any size below.
import { GroveError } from "#base/errors.ts";
import { nameProblem } from "#base/names.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { PurgedItem, Trashed, TrashPurge } from "#storage/contract/trash.ts";
import type { ChangeReply } from "#storage/metadata/change-messages.ts";
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
import { KIND_DIRECTORY } from "#storage/metadata/schema.ts";
import { pathBelow, type ShareRows } from "#storage/metadata/share-rows.ts";
import { type TrashBin, type TrashRow, weightOf } from "#storage/metadata/trash-bin.ts";
import {
  DIRECTORY_DEPTH_MAX,
  requireDepth,
  type TreeHeights,
  tooDeep,
} from "#storage/metadata/tree-heights.ts";
import { type Ledger, type Place, type RootState, usageOf } from "#storage/metadata/unit-of-work.ts";
import { requireVersion } from "./entry-words.ts";
import { makeRoom } from "./make-room.ts";
import type { NamespaceCommands } from "./namespace-commands.ts";
import type { PurgeTrashCommand, RestoreCommand, RestoreReply, TrashCommand } from "./write-commands.ts";

/** Commands on the trash; run one at a time within a transaction. */
export class TrashCommands {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #content: ContentRows;
  readonly #namespace: NamespaceCommands;
  readonly #bin: TrashBin;
  readonly #heights: TreeHeights;
  readonly #locks: LockRows;
  readonly #links: LinkRows;
  readonly #shares: ShareRows;

  constructor(rows: {
    ledger: Ledger;
    inodes: InodeRows;
    content: ContentRows;
    namespace: NamespaceCommands;
    bin: TrashBin;
    heights: TreeHeights;
    locks: LockRows;
    links: LinkRows;
    shares: ShareRows;
  }) {
    this.#ledger = rows.ledger;
    this.#inodes = rows.inodes;
    this.#content = rows.content;
    this.#namespace = rows.namespace;
    this.#bin = rows.bin;
    this.#heights = rows.heights;
    this.#locks = rows.locks;
    this.#links = rows.links;
    this.#shares = rows.shares;
  }

  trash(command: TrashCommand): Trashed {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    const row = this.#namespace.entry(root, command.inodeId);
    const chain = this.#ledger.chain(root, row.parentId);
    holdToPath(command.at, chain, row.name);
    requireVersion(this.#ledger, row, command.ifMatch);
    const height = isDirectory(row) ? (this.#ledger.directory(row.id)?.height ?? 0) : 0;
    this.#locks.dropBelow(root, row.id);
    this.#links.dropBelow(root, row.id, isDirectory(row));
    const item = this.#bin.put({ root, chain }, row, command);
    this.#namespace.leave(chain, height, command.nowMs);
    return { item, usage: usageOf(root), usedDeltaBytes: 0 };
  }

  restore(command: RestoreCommand): RestoreReply {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    const item = this.#bin.find(root, command.trashId);
    const row = item === undefined ? undefined : this.#inodes.byId(item.inodeId);
    if (item === undefined || row === undefined) throw notInTrash();
    const names = command.names ?? item.originalPath.split("/").slice(1);
    const { parentId, made } = this.#makeParents(root, names.slice(0, -1), command);
    const wanted = names.at(-1);
    if (wanted === undefined)
      throw new GroveError("PATH_EXISTS", "the root directory itself is always there");
    const place = this.#namespace.place({ ...command, name: wanted }, parentId);
    const height = isDirectory(row) ? (this.#ledger.directory(row.id)?.height ?? 0) : 0;
    requireDepth(place.chain, height, item.originalPath.split("/").length - 1);
    const room = { parentId, name: wanted, onConflict: command.onConflict };
    const { name, freedBytes, excluded } = makeRoom(this.#inodes, room, (present) =>
      this.#namespace.replace(place, present, row, command),
    );
    const formerShares = this.#bin.formerShares(root, item);
    const change = this.#hang(place, row, item, { name, made, by: command.by, nowMs: command.nowMs });
    const there = { inodeId: row.id, path: pathBelow(place.chain, name) };
    this.#shares.keepOut(root, there, excluded);
    const usedDeltaBytes = freedBytes === 0 ? 0 : -freedBytes;
    return {
      ...change,
      usage: usageOf(root),
      usedDeltaBytes,
      names: [...names.slice(0, -1), name],
      formerShares,
    };
  }

  purgeTrash({ owner, trashIds }: PurgeTrashCommand): TrashPurge {
    const root = this.#ledger.root(owner);
    const items = trashIds.flatMap((id) => this.#purge(root, id) ?? []);
    const freedBytes = items.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    return { items, freedBytes, usage: usageOf(root), usedDeltaBytes: freedBytes === 0 ? 0 : -freedBytes };
  }

  /** The directory with these names; makes the missing ones, and tells how many. */
  #makeParents(
    root: RootState,
    names: readonly string[],
    command: RestoreCommand,
  ): { readonly parentId: InodeId; readonly made: number } {
    let parentId = root.directoryId;
    for (const [depth, name] of names.entries()) {
      const present = this.#inodes.byName(parentId, name);
      if (present === undefined) {
        const chain = this.#ledger.chain(root, parentId);
        const made = names.slice(depth);
        return { parentId: this.#makeDirectories({ root, chain }, made, command), made: made.length };
      }
      if (!isDirectory(present)) {
        const path = `/${names.slice(0, depth + 1).join("/")}`;
        throw new GroveError("NOT_DIRECTORY", `${path} is a file, so nothing can be restored below it`, {
          metadata: { path },
        });
      }
      parentId = present.id;
    }
    return { parentId, made: 0 };
  }

  /**
   * Makes nested directories, all of them missing. Their counts are set to the final values and the sums
   * above move once: two thousand levels take linear time.
   */
  #makeDirectories(place: Place, names: readonly string[], { by, owner, nowMs }: RestoreCommand): InodeId {
    const { root, chain } = place;
    const depth = chain.length + names.length;
    if (depth > DIRECTORY_DEPTH_MAX) throw tooDeep(depth);
    let parentId = chain[0].id;
    for (const [at, name] of names.entries()) {
      const problem = nameProblem(name);
      if (problem !== undefined) throw new GroveError("BAD_NAME", `bad name: ${problem}`);
      const createdBy = by === owner ? null : by;
      const state = newDirectory({ id: this.#ledger.takeId(root), parentId, name, nowMs, createdBy });
      const kind = KIND_DIRECTORY;
      const { id, size, mtimeMs, ctimeMs } = state;
      const row = { id, parentId, name, kind, size, crc32: 0, mtimeMs, ctimeMs, contentId: null, createdBy };
      this.#inodes.insert(row);
      this.#ledger.addDirectory(state);
      this.#ledger.touch(state);
      state.treeInodes = names.length - 1 - at;
      state.childCount = state.treeInodes === 0 ? 0 : 1;
      this.#heights.set(state, state.treeInodes);
      parentId = id;
    }
    const delta = { bytes: 0, inodes: names.length, files: 0 };
    this.#ledger.addToUsage(root, delta);
    this.#ledger.addToChain(chain, delta);
    this.#namespace.enter(chain, names.length - 1, nowMs);
    return parentId;
  }

  #hang(
    { root, chain }: Place,
    row: InodeRow,
    item: TrashRow,
    to: { name: string; made: number; by: string; nowMs: number },
  ): ChangeReply {
    const { name, by, nowMs } = to;
    const parentId = chain[0].id;
    const state = isDirectory(row) ? this.#ledger.directory(row.id) : undefined;
    const { bytes, inodes, files } = weightOf(row, state);
    const version = (state?.version ?? row.version) + 1;
    const made = chain
      .slice(0, to.made)
      .map((folder, at) => ({ inodeId: folder.id, path: pathBelow(chain.slice(at + 1), folder.name) }));
    this.#bin.putBackExclusions(root, item, { path: pathBelow(chain, name), made, by, nowMs });
    this.#bin.forget(root, item.id);
    this.#inodes.rename(row.id, { parentId, name, ctimeMs: nowMs, version });
    if (state !== undefined) {
      this.#ledger.touch(state);
      Object.assign(state, { parentId, name, ctimeMs: nowMs, version });
    }
    this.#ledger.count({ inodes });
    this.#ledger.addToTrash(root, { bytes: -bytes, inodes: -inodes });
    this.#ledger.addToUsage(root, { bytes, inodes, files });
    this.#ledger.addToChain(chain, { bytes, inodes, files });
    this.#namespace.enter(chain, state?.height ?? 0, nowMs);
    // It may now lie below a shared directory.
    if (root.grantCount > 0) {
      this.#ledger.touchRoot(root);
      root.accessVersion++;
    }
    if (state !== undefined) return directoryReply(state, root, 0);
    return fileReply({ ...row, parentId, name, ctimeMs: nowMs, version }, root, 0);
  }

  #purge(root: RootState, id: string): PurgedItem | undefined {
    const item = this.#bin.find(root, id);
    if (item === undefined) return undefined;
    const row = this.#inodes.byId(item.inodeId);
    this.#bin.forget(root, id);
    if (row === undefined) return undefined;
    const state = isDirectory(row) ? this.#ledger.directory(row.id) : undefined;
    const { bytes, inodes } = weightOf(row, state);
    this.#ledger.addToTrash(root, { bytes: -bytes, inodes: -inodes });
    // Removals of more than a few rows go on in slices afterwards, so that a batch of items delays no other
    // command.
    const isSmall = state === undefined ? row.contentId === null : state.childCount === 0;
    if (isSmall) this.#inodes.delete(row, root);
    else {
      this.#inodes.properties.drop(root, row.id);
      this.#content.purgeLater({ inodeId: row.id });
    }
    return { id, originalPath: item.originalPath, sizeBytes: bytes, inodeCount: inodes };
  }
}

function notInTrash(): GroveError {
  return new GroveError("NO_SUCH_PATH", "there is no such item in the trash");
}
