// Storage on PostgreSQL and an object store: the parts of the local engine over cached rows.
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { TRASH_PURGE_BATCH } from "#base/limits.ts";
import { type Logger } from "#base/log.ts";
import { ChunkPins } from "#storage/chunks/chunk-pins.ts";
import type { CopyOrder } from "#storage/contract/copy-order.ts";
import type { ByteRange, FileContent } from "#storage/contract/file-content.ts";
import {
  type Change,
  type ChangeContext,
  type Counted,
  type InodeId,
  ROOT_STRIDE,
  type UploadSink,
} from "#storage/contract/inode.ts";
import type { RecountSettings, RecountState } from "#storage/contract/recount-types.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { ScrubSettings, ScrubState } from "#storage/contract/scrub-types.ts";
import type {
  DamagedFiles,
  DamageFound,
  ListPage,
  ListQuery,
  Removal,
  Resolution,
  RootRecord,
  SortedOrder,
  Storage,
  StorageFacts,
  WantedUpload,
} from "#storage/contract/storage.ts";
import type {
  Restored,
  Trashed,
  TrashHead,
  TrashPage,
  TrashPurge,
  TrashQuery,
} from "#storage/contract/trash.ts";
import type { UserRename } from "#storage/contract/user-rename.ts";
import { CopyRunner } from "#storage/local/copy-runner.ts";
import { LocalLinks } from "#storage/local/link-store.ts";
import type { LocalUploads } from "#storage/local/local-uploads.ts";
import { LocalLocks } from "#storage/local/lock-store.ts";
import { type ContentDeps, PinnedContent } from "#storage/local/pinned-content.ts";
import { LocalProperties } from "#storage/local/property-store.ts";
import { RangeWriter } from "#storage/local/range-writer.ts";
import { LocalShares } from "#storage/local/share-store.ts";
import type { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import type { ObjectStore } from "#storage/object-store/object-store.ts";
import { DamageReports } from "#storage/scrub/damage-reports.ts";
import type { RowFacts } from "#storage/shared/row-facts.ts";
import type { SharedLine } from "#storage/shared/shared-line.ts";
import type { SharedWriter } from "#storage/shared/shared-writer.ts";
import { toChange, wholeMs } from "#storage/writer/change-values.ts";
import type { DamageList } from "./damage-list.ts";
import type { HeldRoots, OwnRoot } from "./held-roots.ts";
import { SharedDrops } from "./shared-drops.ts";
import { SharedLinks } from "./shared-links.ts";
import { SharedLocks, SharedProperties } from "./shared-locks.ts";
import type { SharedMoves } from "./shared-moves.ts";
import { SharedPasses } from "./shared-passes.ts";
import { notHere, SharedQueue } from "./shared-queue.ts";
import { SharedReads, SharedShares } from "./shared-reads.ts";
import type { SharedRenames } from "./shared-renames.ts";
import { SharedUploads } from "./shared-uploads.ts";
import { StoreBytes } from "./store-chunks.ts";

/** Parts of SharedStorage. */
export interface SharedStorageDeps {
  readonly dataId: string;
  readonly reader: SnapshotReader;
  readonly facts: RowFacts;
  readonly writer: SharedWriter;
  readonly roots: HeldRoots;
  readonly store: ObjectStore;
  readonly moves: SharedMoves;
  readonly renames: SharedRenames;
  readonly damaged: DamageList;
  /** A connection for background passes, and the folder for their progress. */
  readonly passLine: SharedLine;
  readonly folder: string;
  /** Makes a root in the database; the one that serves it is another process where `isHere` is false. */
  readonly makeRoot: (root: { owner: string; rootId: string }) => Promise<OwnRoot & { isHere: boolean }>;
  /** Whether the database has this process as the holder of a root. */
  readonly isHolder: (number: number) => Promise<boolean>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends everything below, in its order. */
  readonly close: () => Promise<void>;
}

/** See Storage. Made by openSharedStorage. */
export class SharedStorage implements Storage {
  readonly dataId: string;
  readonly uploads: LocalUploads;
  readonly shares: SharedShares;
  readonly locks: SharedLocks;
  readonly properties: SharedProperties;
  readonly moves: SharedMoves;
  readonly links: SharedLinks;
  readonly #deps: SharedStorageDeps;
  readonly #reads: SharedReads;
  readonly #ownShares: LocalShares;
  readonly #queue: SharedQueue;
  readonly #content: ContentDeps;
  readonly #uploads: SharedUploads;
  readonly #ranges: RangeWriter;
  readonly #copies: CopyRunner;
  readonly #drops: SharedDrops;
  readonly #damage: DamageReports;
  readonly #passes: SharedPasses;
  readonly #failureCallbacks: ((reason: string) => void)[] = [];
  readonly #freedCallbacks: ((owner: string) => void)[] = [];
  readonly #rootCallbacks: ((gained: readonly string[], lost: readonly string[]) => void)[] = [];
  #closing: Promise<void> | undefined;

  constructor(deps: SharedStorageDeps) {
    this.#deps = deps;
    this.dataId = deps.dataId;
    this.moves = deps.moves;
    const { reader, writer, roots } = deps;
    const nowMs = () => this.#nowMs();
    this.#reads = new SharedReads(deps);
    this.#queue = new SharedQueue({
      writer,
      roots,
      ownerOfUpload: (uploadId) => this.uploads.find(uploadId)?.owner,
    });
    const queue = this.#queue;
    this.#damage = new DamageReports({ queue, nowMs });
    this.#damage.onFound(() => deps.damaged.renew());
    this.#passes = new SharedPasses({
      ...deps,
      line: deps.passLine,
      damage: this.#damage,
      noteDamaged: (chunkId, fileId) => queue.noteDamaged(chunkId, fileId),
    });
    this.#ownShares = new LocalShares({ tables: reader.tables, queue, nowMs });
    this.shares = new SharedShares(this.#ownShares, this.#reads);
    const tables = { tables: reader.tables, queue, nowMs };
    const root = (owner: string): RootRecord | undefined => reader.root(owner);
    this.locks = new SharedLocks(new LocalLocks({ ...tables, root }), this.#reads);
    this.properties = new SharedProperties(new LocalProperties(tables), this.#reads);
    this.links = new SharedLinks(new LocalLinks(tables), this.#reads, roots);
    this.#drops = new SharedDrops(deps);
    this.#copies = new CopyRunner({ queue, drops: this.#drops, nowMs });
    const read =
      <A extends InodeId, T>(run: (from: SnapshotReader, id: A) => T) =>
      (id: A): T =>
        this.#ofInode(id, (from) => run(from, id));
    this.#content = {
      reader: {
        file: read((from, id) => from.file(id)),
        inline: read((from, id) => from.inline(id)),
        chunkList: (id, within) => this.#ofInode(id, (from) => from.chunkList(id, within)),
        // It came with its list, and may have been forgotten since. Its number tells no root.
        chunk: (id, fileId) => this.#ofInode(fileId, (from) => from.chunk(id)),
      },
      files: { use: () => Promise.reject(new Error("the shared engine has no chunk files")) },
      pins: new ChunkPins(),
      elsewhere: ({ id }) => new StoreBytes(deps.store.reading(this.#reads.rootOf(id)?.owner ?? "")),
      damaged: ({ id, version }, problem, chunkId) => {
        if (chunkId !== undefined) queue.noteDamaged(chunkId, id);
        void this.#damage.report(chunkId === undefined ? { fileId: id, version } : { chunkId }, problem);
      },
    };
    this.#uploads = new SharedUploads({
      ...deps,
      queue,
      reads: this.#reads,
      drops: this.#drops,
      isClosing: () => this.#closing !== undefined,
      fields: (change) => this.#fields(change),
    });
    this.uploads = this.#uploads.resumable;
    this.#ranges = new RangeWriter({
      content: this.#content,
      outletFor: (write) => this.#uploads.outletOf(write, undefined),
      queue,
      drops: this.#drops,
      failed: (reason) => deps.logger.error("engine.write_failed", { reason }),
      nowMs,
    });
  }

  /** Calls back with the owners of roots that are served here now, and of those that no longer are. */
  onRoots(callback: (gained: readonly string[], lost: readonly string[]) => void): void {
    this.#rootCallbacks.push(callback);
  }

  /** Called after each change of the held roots. */
  rootsChanged(gained: readonly OwnRoot[], lost: readonly OwnRoot[]): void {
    for (const { number } of [...gained, ...lost]) this.#uploads.rootChanged(number);
    const owners = (roots: readonly OwnRoot[]): string[] => roots.map(({ owner }) => owner);
    this.#ownShares.forget(owners([...gained, ...lost]));
    this.#deps.damaged.renew();
    for (const callback of this.#rootCallbacks) callback(owners(gained), owners(lost));
  }

  /** Called when grants have changed. */
  sharesChanged(owners: readonly string[]): void {
    this.#ownShares.changed(owners);
  }

  /** Called when the rows were forgotten. */
  forgot(): void {
    this.#reads.forgot();
  }

  /** Marks a chunk of the root with this number as damaged. */
  async reportDamage(chunkId: number, number: number, problem: string): Promise<void> {
    this.#queue.noteDamaged(chunkId, number * ROOT_STRIDE);
    await this.#damage.report({ chunkId }, problem);
  }

  /** Forgets all rows between two commands; they are fetched again. */
  forgetRows(): Promise<void> {
    return this.#deps.writer.forgetSoon();
  }

  /** Ends all changes for good. */
  fail(reason: string): void {
    if (this.#queue.failure !== undefined) return;
    this.#queue.fail(reason);
    this.#deps.logger.error("storage.failed", { reason });
    for (const callback of this.#failureCallbacks) callback(reason);
  }

  get failure(): string | undefined {
    return this.#queue.failure;
  }

  onFailure(callback: (reason: string) => void): void {
    this.#failureCallbacks.push(callback);
  }

  onFreed(callback: (owner: string) => void): void {
    this.#freedCallbacks.push(callback);
  }

  /** Called when a purge has removed something of a root. */
  purged(owner: string): void {
    for (const callback of this.#freedCallbacks) callback(owner);
  }

  facts(): StorageFacts {
    let [inodeCount, trashBytes, stagingBytes] = [0, 0, 0];
    for (const { usage } of this.#deps.reader.roots()) {
      inodeCount += usage.liveInodes + usage.trashInodes;
      trashBytes += usage.trashBytes;
      stagingBytes += usage.stagingBytes;
    }
    // Chunks are counted by the database alone.
    return { chunkCount: 0, inodeCount, trashBytes, stagingBytes };
  }

  onDamage(callback: (found: DamageFound) => void): void {
    this.#damage.onFound(callback);
  }

  get damageFoundTotal(): number {
    return this.#damage.foundTotal;
  }

  damagedFiles(): DamagedFiles {
    return this.#deps.damaged.files;
  }

  startScrub(settings: ScrubSettings): void {
    this.#passes.startScrub(settings);
  }

  scrubState(): ScrubState {
    return this.#passes.scrubState;
  }

  startRecount(settings: RecountSettings): void {
    this.#passes.startRecount(settings);
  }

  recountState(): RecountState {
    return this.#passes.recountState;
  }

  root(owner: string): RootRecord | undefined {
    const root = this.#reads.root(owner);
    return root && this.#reads.of(root, (reader) => reader.root(owner));
  }

  roots(): RootRecord[] {
    const known = this.#reads.few((reader) => reader.roots());
    return known.flatMap((root) => {
      const held = this.#deps.roots.of(root.owner);
      return held === undefined ? [] : [{ ...root, leaseEpoch: held.epoch }];
    });
  }

  resolve(owner: string, names: readonly string[]): Resolution {
    return this.#reads.of(this.#held(owner), (reader) => reader.resolve(owner, names), names);
  }

  list(directoryId: InodeId, page: ListQuery): ListPage {
    return this.#ofInode(directoryId, (reader) => reader.list(directoryId, page));
  }

  async listSorted(order: SortedOrder): Promise<ListPage> {
    return againWhenRowsCome(() => {
      order.signal.throwIfAborted();
      const query = order.query();
      return this.list(query.directoryId, query);
    });
  }

  inodesBelow(id: InodeId): number {
    return this.#ofInode(id, (reader) => reader.inodesBelow(id));
  }

  openFile(fileId: InodeId, range?: ByteRange): FileContent {
    return this.#ofInode(fileId, (reader) => new PinnedContent(this.#content, reader.content(fileId), range));
  }

  async createRoot({ owner, rootId }: { owner: string; rootId: string }): Promise<RootRecord> {
    const { isHere, ...root } = await this.#deps.makeRoot({ owner, rootId });
    if (!isHere) throw new GroveError("WRONG_NODE", "another node serves this root now");
    await this.#deps.writer.know(owner);
    this.#deps.roots.add(root);
    const made = await againWhenRowsCome(() => this.root(owner));
    if (made === undefined) throw notHere();
    return made;
  }

  /** Throws STORE_UNAVAILABLE while a process of the engine has not heard of it, besides what the contract says. */
  renameUser(rename: UserRename): Promise<number> {
    return this.#deps.renames.carryOut(rename);
  }

  renamedUpTo(): number {
    return this.#deps.renames.upTo;
  }

  async createDirectory(change: ChangeContext & { parentId: InodeId; name: string }): Promise<Change> {
    const { parentId, name } = change;
    const command = { op: "createDirectory", ...this.#fields(change), parentId, name } as const;
    return toChange(change, await this.#queue.submit<"createDirectory">(command));
  }

  async createFile(
    change: ChangeContext & { parentId: InodeId; name: string; data: Uint8Array; mtimeMs: number },
  ): Promise<Change> {
    const { parentId, name } = change;
    // The command may wait, and the caller's buffer is the caller's.
    const data = new Uint8Array(change.data);
    const mtimeMs = wholeMs(change.mtimeMs);
    const command = { op: "createFile", ...this.#fields(change), parentId, name, data, mtimeMs } as const;
    return toChange(change, await this.#queue.submit<"createFile">(command));
  }

  beginUpload(wanted: WantedUpload): UploadSink {
    return this.#uploads.begin(wanted);
  }

  async writeRange(change: Parameters<Storage["writeRange"]>[0]): Promise<Change> {
    return toChange(change, await againWhenRowsCome(() => this.#ranges.write(change)));
  }

  async setSize(change: Parameters<Storage["setSize"]>[0]): Promise<Change> {
    return toChange(change, await againWhenRowsCome(() => this.#ranges.setSize(change)));
  }

  async rename(change: Parameters<Storage["rename"]>[0]): Promise<Change> {
    const { inodeId, parentId, name, targetAt, onConflict, ifMatch, targetIfMatch } = change;
    const target = { parentId, name, targetAt, onConflict, ifMatch, targetIfMatch };
    const command = { op: "rename", ...this.#fields(change), inodeId, ...target } as const;
    return toChange(change, await this.#queue.submit<"rename">(command));
  }

  async copy(order: CopyOrder): Promise<Change> {
    const { target, reply } = await this.#copies.run(order);
    return toChange(target, reply);
  }

  remove(change: ChangeContext & { inodeId: InodeId; recursive: boolean }): Promise<Removal> {
    const { inodeId, recursive } = change;
    return this.#queue.submit<"remove">({ op: "remove", ...this.#fields(change), inodeId, recursive });
  }

  trash(change: Parameters<Storage["trash"]>[0]): Promise<Counted<Trashed>> {
    const { inodeId, ifMatch } = change;
    return this.#queue.submit<"trash">({ op: "trash", ...this.#fields(change), inodeId, ifMatch });
  }

  async restore(change: Parameters<Storage["restore"]>[0]): Promise<Restored> {
    const { trashId, names, onConflict } = change;
    const item = { trashId, names, onConflict };
    const command = { op: "restore", ...this.#fields({ ...change, at: undefined }), ...item } as const;
    const reply = await this.#queue.submit<"restore">(command);
    return { ...toChange(change, reply), names: reply.names, formerShares: reply.formerShares };
  }

  async purgeTrash({ owner, trashIds }: Parameters<Storage["purgeTrash"]>[0]): Promise<Counted<TrashPurge>> {
    if (trashIds.length > TRASH_PURGE_BATCH) {
      throw new GroveError("BAD_ARGUMENT", `at most ${TRASH_PURGE_BATCH} items are purged at once`);
    }
    return this.#queue.submit<"purgeTrash">({ op: "purgeTrash", owner, trashIds });
  }

  listTrash(owner: string, query: TrashQuery): TrashPage {
    return this.#reads.of(this.#held(owner), (reader) => reader.listTrash(owner, query));
  }

  trashBefore(timeMs: number, limit: number): TrashHead[] {
    const heads: TrashHead[] = [];
    for (const { owner, usage } of this.roots()) {
      if (usage.trashInodes > 0) heads.push(...this.oldestTrash(owner, timeMs, limit));
    }
    return heads.toSorted((a, b) => a.trashedAtMs - b.trashedAtMs).slice(0, limit);
  }

  oldestTrash(owner: string, beforeMs: number, limit: number): TrashHead[] {
    return this.#reads.of(this.#held(owner), (reader) => reader.oldestTrash(owner, beforeMs, limit));
  }

  close(): Promise<void> {
    this.#closing ??= this.#passes.stop().then(() => this.#deps.close());
    return this.#closing;
  }

  #held(owner: string): OwnRoot {
    const root = this.#reads.root(owner);
    if (root === undefined) throw notHere();
    return root;
  }

  #ofInode<T>(id: InodeId, read: (reader: SnapshotReader) => T): T {
    const root = this.#reads.rootOf(id);
    if (root === undefined) throw new GroveError("NO_SUCH_PATH", "no such file or directory");
    return this.#reads.of(root, read);
  }

  #fields(change: ChangeContext): ChangeContext & { nowMs: number } {
    const { owner, accessVersion, lockVersion, by, at, maxInodes } = change;
    return { owner, accessVersion, lockVersion, by, at, maxInodes, nowMs: this.#nowMs() };
  }

  #nowMs(): number {
    return Math.trunc(this.#deps.clock.wallMs());
  }
}
