// Uploads to the shared engine: chunks go to the object store, then the file's row to PostgreSQL.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import { type Change, type ChangeContext, rootNumberOf, type UploadSink } from "#storage/contract/inode.ts";
import type { WantedUpload } from "#storage/contract/storage.ts";
import type { ResumableSink, StoredUpload } from "#storage/contract/upload-store.ts";
import { LocalUploads } from "#storage/local/local-uploads.ts";
import { type ResumePoint, StagedUpload, type UploadSinkDeps } from "#storage/local/upload-sink.ts";
import type { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import type { ChunkNamesOfRoot } from "#storage/object-store/chunk-names-of-root.ts";
import type { ObjectStore } from "#storage/object-store/object-store.ts";
import { heldElsewhere } from "#storage/shared/writer-refusals.ts";
import { toChange, wholeMs } from "#storage/writer/change-values.ts";
import type { NewContent } from "#storage/writer/write-commands.ts";
import type { HeldRoots } from "./held-roots.ts";
import type { SharedDrops } from "./shared-drops.ts";
import { notHere, type SharedQueue } from "./shared-queue.ts";
import type { SharedReads } from "./shared-reads.ts";
import { StoreChunks } from "./store-chunks.ts";

/** Dependencies of uploads. */
export interface SharedUploadsDeps {
  readonly queue: SharedQueue;
  readonly reads: SharedReads;
  readonly reader: SnapshotReader;
  readonly roots: Pick<HeldRoots, "of" | "withNumber">;
  readonly store: Pick<ObjectStore, "namesOf" | "upload">;
  readonly drops: SharedDrops;
  readonly clock: Clock;
  readonly logger: Logger;
  /** True once the engine ends: what is under way may or may not get its rows. */
  readonly isClosing: () => boolean;
  /** What every command says of its change. */
  readonly fields: (change: ChangeContext) => ChangeContext & { readonly nowMs: number };
}

/** Uploads of held roots, those that go on later included. */
export class SharedUploads {
  /** See Storage. */
  readonly resumable: LocalUploads;
  readonly #deps: SharedUploadsDeps;
  /** Names for the chunks of each held root, by its number. */
  readonly #names = new Map<number, ChunkNamesOfRoot>();

  constructor(deps: SharedUploadsDeps) {
    this.#deps = deps;
    const { queue, reads, reader, clock } = deps;
    this.resumable = new LocalUploads({
      queue,
      tables: { ...reader.tables, read: (run) => reads.few(() => reader.tables.read(run)) },
      clock,
      openSink: (upload, point, onStaged) => this.#resume(upload, point, onStaged),
    });
  }

  /** Names no more chunks under the epochs of a root that has come or gone. */
  rootChanged(number: number): void {
    this.#names.delete(number);
  }

  /** Begins one. */
  begin({ owner, by = owner, sizeBytes }: WantedUpload): UploadSink {
    const { queue, drops } = this.#deps;
    const outlet = this.outletOf({ owner, by }, sizeBytes);
    return new StagedUpload(
      {
        ...this.#sinkDeps(outlet),
        stage: (contentId, chunks) =>
          queue.submit<"stageChunks">({ op: "stageChunks", owner, contentId, chunks }),
        dropStaged: (contentId) =>
          drops.run(() => queue.submit<"dropStaged">({ op: "dropStaged", contentId }), contentId),
        commit: (target, uploaded) => this.#commit(target, uploaded),
      },
      sizeBytes,
    );
  }

  /** The way of new chunks to the store. Throws NO_SUCH_PATH for a root that is not held. */
  outletOf({ owner, by }: Pick<ChangeContext, "by" | "owner">, sizeBytes: number | undefined): StoreChunks {
    const { store, reads, queue, roots, isClosing } = this.#deps;
    const root = reads.root(owner);
    if (root === undefined) throw notHere();
    const names = this.#names.get(root.number) ?? store.namesOf(root.rootId, root.epoch);
    this.#names.set(root.number, names);
    // A refusal says that nothing was made, while the root is held on; of the rest the sweeps ask the database.
    const { unsureTotal } = queue;
    const isUnsure = (): boolean =>
      queue.failure !== undefined || queue.unsureTotal !== unsureTotal || isClosing();
    const isHeld = (): boolean => roots.of(owner)?.epoch === root.epoch;
    return new StoreChunks(store.upload({ names, user: by, sizeBytes }), isUnsure, isHeld);
  }

  #resume(
    { uploadId, owner, by, sizeBytes }: StoredUpload,
    point: ResumePoint,
    onStaged: Parameters<LocalUploads["open"]>[1],
  ): ResumableSink {
    const { queue, drops, roots } = this.#deps;
    const outlet = this.outletOf({ owner, by }, sizeBytes);
    const drop = async (): Promise<void> => {
      // What is not found of it says nothing while its root is not here.
      if (roots.withNumber(rootNumberOf(point.contentId)) === undefined) throw heldElsewhere();
      onStaged(await this.resumable.drop(uploadId));
    };
    return new StagedUpload(
      {
        ...this.#sinkDeps(outlet),
        stage: async (_, chunks) => {
          const nowMs = this.resumable.nowMs();
          const command = { op: "stageUpload", uploadId, chunks, nowMs } as const;
          onStaged(await queue.submit<"stageUpload">(command));
          return point.contentId;
        },
        dropStaged: () => drops.run(drop, point.contentId),
        commit: (target, { content, ...uploaded }) => {
          const resumed =
            "inline" in content ? { ...content, uploadId } : { uploadId, chunks: content.chunks };
          return this.#commit(target, { content: resumed, ...uploaded });
        },
      },
      sizeBytes,
      point,
    );
  }

  #sinkDeps(outlet: StoreChunks): Pick<UploadSinkDeps, "outlet" | "budget" | "failure" | "failed"> {
    return {
      outlet,
      budget: outlet.upload,
      failure: () => this.#deps.queue.failure,
      failed: (reason) => this.#deps.logger.error("engine.write_failed", { reason }),
    };
  }

  async #commit(
    target: Parameters<UploadSink["commit"]>[0],
    uploaded: { content: NewContent; sizeBytes: number; crc32: number },
  ): Promise<Change> {
    const { parentId, name, onExists, ifMatch } = target;
    const place = { parentId, name, onExists, ifMatch, mtimeMs: wholeMs(target.mtimeMs) };
    const command = { op: "commitUpload", ...this.#deps.fields(target), ...place, ...uploaded } as const;
    return toChange(target, await this.#deps.queue.submit<"commitUpload">(command));
  }
}
