// Storage on one machine: joins the reader, the writer's queue, chunk files and the garbage collector.
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { TRASH_PURGE_BATCH } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { LockProbe } from "#os/file-lock.ts";
import { BACKUP_LEASE_FILE } from "#storage/chunks/backup-layout.ts";
import { FileChunks } from "#storage/chunks/chunk-outlet.ts";
import { ChunkPins } from "#storage/chunks/chunk-pins.ts";
import { ChunkStore } from "#storage/chunks/chunk-store.ts";
import { OpenChunkFiles } from "#storage/chunks/open-chunk-files.ts";
import { UploadBudget } from "#storage/chunks/upload-budget.ts";
import type { ContentElsewhere } from "#storage/contract/content-elsewhere.ts";
import type { CopyOrder } from "#storage/contract/copy-order.ts";
import type { ByteRange, FileContent } from "#storage/contract/file-content.ts";
import type {
  Change,
  ChangeContext,
  Counted,
  InodeId,
  UploadSink,
  UploadTarget,
} from "#storage/contract/inode.ts";
import type { RecountSettings, RecountState } from "#storage/contract/recount-types.ts";
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
import type { ResumableSink, StagingChange, StoredUpload } from "#storage/contract/upload-store.ts";
import type { UserRename } from "#storage/contract/user-rename.ts";
import type { DataDirectory } from "#storage/metadata/data-directory.ts";
import { RENAMED_UP_TO } from "#storage/metadata/schema.ts";
import { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import { storageFailed } from "#storage/metadata/sqlite-errors.ts";
import { DamageReader } from "#storage/scrub/damage-reader.ts";
import { DamageReports } from "#storage/scrub/damage-reports.ts";
import { toChange, wholeMs } from "#storage/writer/change-values.ts";
import { rememberedDirectories } from "#storage/writer/chunk-directories.ts";
import type { NewContent } from "#storage/writer/write-commands.ts";
import { WriteQueue } from "#storage/writer/write-queue.ts";
import { CopyRunner } from "./copy-runner.ts";
import { DropRetries } from "./drop-retries.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { LocalLinks } from "./link-store.ts";
import { LocalMoves } from "./local-moves.ts";
import { LocalPasses } from "./local-passes.ts";
import { LocalUploads } from "./local-uploads.ts";
import { LocalLocks } from "./lock-store.ts";
import { type ContentDeps, PinnedContent } from "./pinned-content.ts";
import { LocalProperties } from "./property-store.ts";
import { RangeWriter } from "./range-writer.ts";
import { LocalShares } from "./share-store.ts";
import { SortedListings } from "./sorted-listings.ts";
import { type ResumePoint, StagedUpload, type UploadSinkDeps } from "./upload-sink.ts";

/** Parts of LocalStorage. */
export interface LocalStorageDeps {
  readonly data: DataDirectory;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly firstDirectory: string;
  readonly ballastPath: string;
  readonly ballastBytes: number;
}

/** See Storage. Made by openStorage. */
export class LocalStorage implements Storage {
  readonly dataId: string;
  readonly uploads: LocalUploads;
  readonly shares: LocalShares;
  readonly moves: LocalMoves;
  readonly locks: LocalLocks;
  readonly links: LocalLinks;
  readonly properties: LocalProperties;
  readonly #data: DataDirectory;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #queue: WriteQueue;
  readonly #reader: SnapshotReader;
  readonly #store: ChunkStore;
  readonly #files: OpenChunkFiles;
  readonly #garbage: GarbageCollector;
  readonly #ranges: RangeWriter;
  readonly #copies: CopyRunner;
  readonly #content: ContentDeps;
  readonly #damage: DamageReports;
  readonly #damaged: DamageReader;
  readonly #passes: LocalPasses;
  readonly #listings: SortedListings;
  readonly #lease: LockProbe;
  readonly #budget = new UploadBudget();
  readonly #drops: DropRetries;
  readonly #failureCallbacks: ((reason: string) => void)[] = [];
  readonly #freedCallbacks: ((owner: string) => void)[] = [];
  #closing: Promise<void> | undefined;

  constructor(deps: LocalStorageDeps) {
    const { data, random, logger, firstDirectory, ballastPath, ballastBytes } = deps;
    this.#data = data;
    this.dataId = data.dataId;
    this.#clock = deps.clock;
    this.#logger = logger;
    const failed = (reason: string): void => this.#queue.fail(reason);
    this.#reader = new SnapshotReader(data.databasePath, (error) => failed(errorText(error)));
    this.#queue = new WriteQueue(
      { databasePath: data.databasePath, ballastPath, ballastBytes },
      {
        committed: () => this.#reader.renew(),
        sharesChanged: (owners) => this.shares.changed(owners),
        freed: (owners) => {
          for (const owner of owners) for (const callback of this.#freedCallbacks) callback(owner);
        },
        garbage: () => this.#garbage.wake(),
        failed: (reason) => this.#tellFailure(reason),
      },
    );
    const queue = this.#queue;
    const openDirectories = rememberedDirectories(queue);
    const store = new ChunkStore({ directory: data.path, firstDirectory, random, openDirectories, failed });
    this.#store = store;
    this.#files = new OpenChunkFiles((name) => store.pathOf(name));
    const pins = new ChunkPins();
    this.#lease = new LockProbe(join(data.path, BACKUP_LEASE_FILE));
    const common = { reader: this.#reader, files: this.#files, pins };
    this.#garbage = new GarbageCollector({ ...common, store, queue, logger, lease: this.#lease });
    const nowMs = () => this.#nowMs();
    this.shares = new LocalShares({ tables: this.#reader.tables, queue, nowMs });
    const root = (owner: string): RootRecord | undefined => this.#reader.root(owner);
    this.properties = new LocalProperties({ tables: this.#reader.tables, queue, nowMs });
    this.locks = new LocalLocks({ tables: this.#reader.tables, queue, nowMs, root });
    this.links = new LocalLinks({ tables: this.#reader.tables, queue, nowMs });
    this.#damage = new DamageReports({ queue, nowMs });
    this.#damaged = new DamageReader(this.#reader.tables);
    const sharesChanged = (owners: readonly string[]): void => this.shares.changed(owners);
    const moved = { queue, store, files: this.#files, damage: this.#damage, sharesChanged };
    this.moves = new LocalMoves({ ...moved, tables: this.#reader.tables });
    this.#listings = new SortedListings({ ...data, clock: deps.clock, broken: failed });
    this.#passes = new LocalPasses({ ...deps, queue, failed, damage: this.#damage, reader: this.#damaged });
    this.#content = {
      ...common,
      damaged: ({ id, version }, problem, chunkId) =>
        void this.#damage.report(chunkId === undefined ? { fileId: id, version } : { chunkId }, problem),
    };
    const outletFor = ({ by }: ChangeContext) => new FileChunks(store, by);
    this.#drops = new DropRetries(deps);
    const drops = this.#drops;
    this.#ranges = new RangeWriter({ content: this.#content, outletFor, queue, drops, failed, nowMs });
    this.#copies = new CopyRunner({ queue, drops, nowMs });
    this.uploads = new LocalUploads({
      queue,
      tables: this.#reader.tables,
      clock: deps.clock,
      openSink: (...wanted) => this.#resumeUpload(...wanted),
    });
  }

  /** Resolves when the writer serves; rejects with STORAGE_FAILED after releasing everything. */
  async ready(): Promise<void> {
    try {
      await this.#queue.ready;
      await this.uploads.boundTimes();
    } catch (error) {
      await this.close();
      throw error;
    }
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

  facts(): StorageFacts {
    return this.#queue.facts;
  }

  onDamage(callback: (found: DamageFound) => void): void {
    this.#damage.onFound(callback);
  }

  get damageFoundTotal(): number {
    return this.#damage.foundTotal;
  }

  damagedFiles(): DamagedFiles {
    return this.#damaged.files();
  }

  startScrub(settings: ScrubSettings): void {
    this.#open();
    this.#passes.startScrub(settings);
  }

  scrubState(): ScrubState {
    return this.#passes.scrubState;
  }

  startRecount(settings: RecountSettings): void {
    this.#open();
    this.#passes.startRecount(settings);
  }

  recountState(): RecountState {
    return this.#passes.recountState;
  }

  root(owner: string): RootRecord | undefined {
    return this.#open().root(owner);
  }

  roots(): RootRecord[] {
    return this.#open().roots();
  }

  resolve(owner: string, names: readonly string[]): Resolution {
    return this.#open().resolve(owner, names);
  }

  list(directoryId: InodeId, page: ListQuery): ListPage {
    return this.#open().list(directoryId, page);
  }

  listSorted(order: SortedOrder): Promise<ListPage> {
    return this.#listings.list(order);
  }

  inodesBelow(id: InodeId): number {
    return this.#open().inodesBelow(id);
  }

  openFile(fileId: InodeId, range?: ByteRange): FileContent {
    return new PinnedContent(this.#content, this.#open().content(fileId), range);
  }

  createRoot({ owner, rootId, number }: Parameters<Storage["createRoot"]>[0]): Promise<RootRecord> {
    return this.#queue.submit({ op: "createRoot", owner, rootId, number, nowMs: this.#nowMs() });
  }

  async renameUser(rename: UserRename): Promise<number> {
    for (let after: InodeId = 0, isFirst = true; isFirst || after !== 0; isFirst = false)
      after = await this.#queue.submit<"renameCreator">({ op: "renameCreator", ...rename, after });
    const rows = await this.#queue.submit<"renameUser">({ op: "renameUser", ...rename });
    this.#reader.owners.clear();
    return rows;
  }

  renamedUpTo(): number {
    const { tables } = this.#reader;
    const row = tables.read(() => tables.prepare("SELECT value FROM meta WHERE key = ?").get(RENAMED_UP_TO));
    return Number((row as [string] | undefined)?.[0] ?? 0);
  }

  async createDirectory(change: ChangeContext & { parentId: InodeId; name: string }): Promise<Change> {
    const { parentId, name } = change;
    const command = { op: "createDirectory", ...this.#fields(change), parentId, name } as const;
    return toChange(change, await this.#queue.submit(command));
  }

  async createFile(
    change: ChangeContext & { parentId: InodeId; name: string; data: Uint8Array; mtimeMs: number },
  ): Promise<Change> {
    const { parentId, name, data } = change;
    const mtimeMs = wholeMs(change.mtimeMs);
    const command = { op: "createFile", ...this.#fields(change), parentId, name, data, mtimeMs } as const;
    return toChange(change, await this.#queue.submit(command));
  }

  beginUpload({ owner, by = owner, sizeBytes, elsewhere }: WantedUpload): UploadSink {
    const queue = this.#queue;
    return new StagedUpload(
      {
        ...this.#sinkDeps(by, elsewhere),
        stage: (contentId, chunks) => queue.submit({ op: "stageChunks", owner, contentId, chunks }),
        dropStaged: (contentId) => this.#drops.run(() => queue.submit({ op: "dropStaged", contentId })),
        commit: (target, uploaded) => this.#commitUpload(target, uploaded),
      },
      sizeBytes,
    );
  }

  #resumeUpload(
    { uploadId, by, sizeBytes }: StoredUpload,
    point: ResumePoint,
    onStaged: (change: StagingChange) => void,
    elsewhere: ContentElsewhere | undefined,
  ): ResumableSink {
    const queue = this.#queue;
    return new StagedUpload(
      {
        ...this.#sinkDeps(by, elsewhere),
        stage: async (_, chunks) => {
          const nowMs = this.uploads.nowMs();
          onStaged(await queue.submit({ op: "stageUpload", uploadId, chunks, nowMs }));
          return point.contentId;
        },
        dropStaged: () => this.#drops.run(async () => onStaged(await this.uploads.drop(uploadId))),
        commit: (target, { content, ...uploaded }) => {
          const resumed =
            "inline" in content ? { ...content, uploadId } : { uploadId, chunks: content.chunks };
          return this.#commitUpload(target, { content: resumed, ...uploaded });
        },
      },
      sizeBytes,
      point,
    );
  }

  #sinkDeps(
    by: string,
    thread: ContentElsewhere | undefined,
  ): Pick<UploadSinkDeps, "outlet" | "budget" | "elsewhere" | "failure" | "failed"> {
    const files = new FileChunks(this.#store, by);
    return {
      outlet: files,
      elsewhere: thread && { thread, files },
      budget: this.#budget.shareOf(by),
      failure: () => this.failure,
      failed: (reason) => this.#queue.fail(reason),
    };
  }

  async #commitUpload(
    target: UploadTarget,
    uploaded: { content: NewContent; sizeBytes: number; crc32: number },
  ): Promise<Change> {
    const { parentId, name, onExists, ifMatch } = target;
    const place = { parentId, name, onExists, ifMatch, mtimeMs: wholeMs(target.mtimeMs) };
    const command = { op: "commitUpload", ...this.#fields(target), ...place, ...uploaded } as const;
    return toChange(target, await this.#queue.submit(command));
  }

  async writeRange(change: Parameters<Storage["writeRange"]>[0]): Promise<Change> {
    this.#open();
    if (this.failure !== undefined) throw storageFailed(this.failure);
    return toChange(change, await this.#ranges.write(change));
  }

  async setSize(
    change: ChangeContext & { fileId: InodeId; sizeBytes: number; ifMatch: string | undefined },
  ): Promise<Change> {
    this.#open();
    if (this.failure !== undefined) throw storageFailed(this.failure);
    return toChange(change, await this.#ranges.setSize(change));
  }

  async rename(change: Parameters<Storage["rename"]>[0]): Promise<Change> {
    const { inodeId, parentId, name, targetAt, onConflict, ifMatch, targetIfMatch } = change;
    const target = { parentId, name, targetAt, onConflict, ifMatch, targetIfMatch };
    const command = { op: "rename", ...this.#fields(change), inodeId, ...target } as const;
    return toChange(change, await this.#queue.submit(command));
  }

  async copy(order: CopyOrder): Promise<Change> {
    const { target, reply } = await this.#copies.run(order);
    return toChange(target, reply);
  }

  remove(change: ChangeContext & { inodeId: InodeId; recursive: boolean }): Promise<Removal> {
    const { inodeId, recursive } = change;
    return this.#queue.submit({ op: "remove", ...this.#fields(change), inodeId, recursive });
  }

  trash(change: Parameters<Storage["trash"]>[0]): Promise<Counted<Trashed>> {
    const { inodeId, ifMatch } = change;
    return this.#queue.submit({ op: "trash", ...this.#fields(change), inodeId, ifMatch });
  }

  async restore(change: Parameters<Storage["restore"]>[0]): Promise<Restored> {
    const { trashId, names, onConflict } = change;
    const item = { trashId, names, onConflict };
    const command = { op: "restore", ...this.#fields({ ...change, at: undefined }), ...item } as const;
    const reply = await this.#queue.submit(command);
    return { ...toChange(change, reply), names: reply.names, formerShares: reply.formerShares };
  }

  purgeTrash({ owner, trashIds }: Parameters<Storage["purgeTrash"]>[0]): Promise<Counted<TrashPurge>> {
    if (trashIds.length > TRASH_PURGE_BATCH) {
      throw new GroveError("BAD_ARGUMENT", `at most ${TRASH_PURGE_BATCH} items are purged at once`);
    }
    return this.#queue.submit({ op: "purgeTrash", owner, trashIds });
  }

  listTrash(owner: string, query: TrashQuery): TrashPage {
    return this.#open().listTrash(owner, query);
  }

  trashBefore(timeMs: number, limit: number): TrashHead[] {
    return this.#open().trashBefore(timeMs, limit);
  }

  oldestTrash(owner: string, beforeMs: number, limit: number): TrashHead[] {
    return this.#open().oldestTrash(owner, beforeMs, limit);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([this.#passes.stop(), this.#listings.stop()]);
    await this.#garbage.stop();
    this.#lease.close();
    await this.#store.close();
    this.#files.closeAll();
    // The last connection to close empties the log, so the writer's does. After a failure that would repeat a
    // flush: the reader, which only reads, closes last.
    if (this.failure === undefined) this.#reader.close();
    await this.#queue.close();
    if (this.failure !== undefined) this.#reader.close();
    this.#data.release();
  }

  /** The reader, while it is open. */
  #open(): SnapshotReader {
    if (this.#closing !== undefined) throw new GroveError("STORAGE_FAILED", "the store is closed");
    return this.#reader;
  }

  #fields(change: ChangeContext): ChangeContext & { nowMs: number } {
    const { owner, accessVersion, lockVersion, by, at, maxInodes } = change;
    return { owner, accessVersion, lockVersion, by, at, maxInodes, nowMs: this.#nowMs() };
  }

  #nowMs(): number {
    return Math.trunc(this.#clock.wallMs());
  }

  #tellFailure(reason: string): void {
    this.#logger.error("storage.failed", { reason });
    for (const callback of this.#failureCallbacks) callback(reason);
  }
}
