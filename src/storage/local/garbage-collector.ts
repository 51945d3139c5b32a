// Unlinks unreferenced chunk files: rows first, files afterwards, never while a reader has them open.
import { errorText, type Logger } from "#base/log.ts";
import type { LockProbe } from "#os/file-lock.ts";
import type { ChunkPins } from "#storage/chunks/chunk-pins.ts";
import type { ChunkStore } from "#storage/chunks/chunk-store.ts";
import { FairSlots } from "#storage/chunks/fair-slots.ts";
import type { OpenChunkFiles } from "#storage/chunks/open-chunk-files.ts";
import { GARBAGE_BATCH_CHUNKS } from "#storage/metadata/content-rows.ts";
import type { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

const UNLINKS_AT_ONCE = 2;
const LEASE_CHECK_MS = 1_000;
/** Longest pause before refused garbage is tried again; the first is as long as a look at the lease. */
const RETRY_MAX_MS = 10_000;

interface Garbage {
  readonly id: number;
  readonly name: string;
}

/** Dependencies of the collector. */
export interface GarbageCollectorDeps {
  readonly reader: SnapshotReader;
  readonly store: ChunkStore;
  readonly files: OpenChunkFiles;
  readonly pins: ChunkPins;
  readonly queue: WriteQueue;
  readonly logger: Logger;
  /** Held by a backup while it needs the chunks of its snapshot. */
  readonly lease: LockProbe;
}

/** Processes the garbage table in the background, a batch at a time. */
export class GarbageCollector {
  readonly #deps: GarbageCollectorDeps;
  readonly #unlinks = new FairSlots({ what: "unlinks", slots: UNLINKS_AT_ONCE });
  /** Garbage that was pinned at its turn; at most as many chunks as are pinned. */
  readonly #deferred = new Map<number, Garbage>();
  #released: Garbage[] = [];
  /** Garbage that was not removed at its turn; fewer than two batches. */
  #refused: Garbage[] = [];
  #retryMs = LEASE_CHECK_MS;
  #afterSequence = 0;
  #isWanted = false;
  #isStopped = false;
  #running: Promise<void> | undefined;
  #waiting: NodeJS.Timeout | undefined;

  constructor(deps: GarbageCollectorDeps) {
    this.#deps = deps;
    deps.pins.onReleased((chunkIds) => this.#release(chunkIds));
  }

  /** Looks for garbage in the table, from where it last ended. */
  wake(): void {
    this.#isWanted = true;
    if (this.#waiting !== undefined) return;
    if (this.#isStopped || this.#running !== undefined || this.#deps.queue.failure !== undefined) return;
    this.#running = this.#collect()
      // The store handles an unreadable database; the collector goes on.
      .catch((error: unknown) => this.#deps.logger.warn("storage.garbage_kept", { error: errorText(error) }))
      .finally(() => {
        this.#running = undefined;
        // A reader closed between the last query and here.
        if (this.#isWanted) this.wake();
      });
  }

  /** Ends after the current batch; the next start finds the rest. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#waiting);
    await this.#running;
  }

  #release(chunkIds: readonly number[]): void {
    if (this.#deferred.size === 0) return;
    for (const id of chunkIds) {
      const garbage = this.#deferred.get(id);
      if (garbage === undefined) continue;
      this.#deferred.delete(id);
      this.#released.push(garbage);
    }
    if (this.#released.length > 0) this.wake();
  }

  async #collect(): Promise<void> {
    while (this.#isWanted && !this.#isStopped && this.#deps.queue.failure === undefined) {
      this.#isWanted = false;
      for (let batch = this.#nextBatch(); batch.length > 0; batch = this.#nextBatch()) {
        // Checked after the rows were read: a later holder of the lease has a snapshot in which these chunks
        // are garbage.
        if (this.#deps.lease.isHeld()) {
          this.#released.push(...batch);
          this.#wait(LEASE_CHECK_MS);
          return;
        }
        const kept = batch.filter(({ id }) => this.#deps.pins.isPinned(id));
        for (const garbage of kept) this.#deferred.set(garbage.id, garbage);
        const free = batch.filter(({ id }) => !this.#deps.pins.isPinned(id));
        const goesOn = free.length === 0 || (await this.#unlink(free));
        if (this.#isStopped || this.#deps.queue.failure !== undefined) return;
        if (!goesOn) break;
      }
      if (this.#refused.length > 0) return this.#retryLater();
      this.#retryMs = LEASE_CHECK_MS;
    }
  }

  #nextBatch(): Garbage[] {
    if (this.#released.length > 0) return this.#released.splice(0, GARBAGE_BATCH_CHUNKS);
    const rows = this.#deps.reader.garbage(this.#afterSequence, GARBAGE_BATCH_CHUNKS);
    this.#afterSequence = rows.at(-1)?.sequence ?? this.#afterSequence;
    return rows;
  }

  /** Pauses during a backup, until it has ended in any way, and after a refusal. */
  #wait(pauseMs: number): void {
    this.#waiting ??= setTimeout(() => {
      this.#waiting = undefined;
      this.wake();
    }, pauseMs).unref();
  }

  #retryLater(): void {
    this.#released.push(...this.#refused);
    this.#refused = [];
    this.#wait(this.#retryMs);
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MAX_MS);
  }

  /** Sets aside what is refused; false when more is to wait with it. */
  async #unlink(batch: readonly Garbage[]): Promise<boolean> {
    const { store, queue } = this.#deps;
    const tried = await Promise.allSettled(batch.map(({ name }) => this.#unlinkFile(name)));
    const garbage = batch.filter((_, index) => tried[index]?.status === "fulfilled");
    const kept = batch.filter((_, index) => tried[index]?.status === "rejected");
    const failed = tried.find((each) => each.status === "rejected");
    if (failed !== undefined) this.#refuse(kept, failed.reason);
    if (garbage.length === 0) return this.#refused.length < GARBAGE_BATCH_CHUNKS;
    try {
      // A row that went before its file would leave an unknown file after a crash.
      await store.flushDirectoriesOf(garbage.map(({ name }) => name));
      await queue.submit({ op: "dropGarbage", chunkIds: garbage.map(({ id }) => id) });
    } catch (error) {
      this.#refuse(garbage, error);
      return false;
    }
    return this.#refused.length < GARBAGE_BATCH_CHUNKS;
  }

  #unlinkFile(name: string): Promise<void> {
    return this.#unlinks.run("", () => {
      this.#deps.files.forget(name);
      return this.#deps.store.unlink(name);
    });
  }

  #refuse(garbage: readonly Garbage[], error: unknown): void {
    this.#refused.push(...garbage);
    this.#deps.logger.warn("storage.garbage_kept", { chunks: garbage.length, error: errorText(error) });
  }
}
