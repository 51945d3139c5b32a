// Creates, flushes and unlinks the chunk files of a data directory.

import { close, constants, fdatasync, fsync, open, unlink } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Random } from "#base/random.ts";
import {
  CHUNK_NAME_RANDOM_BYTES,
  CHUNKS_DIRECTORY,
  chunkPath,
  directoryOfChunk,
  nextDirectory,
} from "./chunk-names.ts";
import { FairSlots } from "./fair-slots.ts";
import { lacksDescriptors } from "./lacks-descriptors.ts";

/** Chunk files put into one directory before the next is taken, so that start-up sweeps few of them. */
export const CHUNKS_PER_DIRECTORY_TURN = 4_096;

const openFile = promisify(open);
const closeFile = promisify(close);
const flushData = promisify(fdatasync);
const flushAll = promisify(fsync);
const unlinkFile = promisify(unlink);

/** Two of the thread pool's four threads stay free for reads and writes while flushes wait for the disk. */
const FLUSHES_AT_ONCE = Math.max(2, Number(process.env["UV_THREADPOOL_SIZE"] ?? 4) - 2);

/**
 * Remembers, across a crash, the directories that may hold files without rows; the next start sweeps those.
 */
export interface OpenDirectories {
  /** Resolves when it is on stable storage. */
  open(directory: string): Promise<unknown>;
  close(directory: string): Promise<unknown>;
}

/**
 * Names, flushes and unlinks chunk files. `failed` receives any failed flush or close, which is final.
 */
export class ChunkStore {
  readonly #directory: string;
  readonly #random: Random;
  readonly #openDirectories: OpenDirectories;
  readonly #failed: (reason: string) => void;
  readonly #flushes = new FairSlots({ what: "flushes", slots: FLUSHES_AT_ONCE });
  readonly #directoryFlushes = new Map<string, DirectoryFlush>();
  /** By directory: chunks that have a name and are neither committed nor unlinked. */
  readonly #unsettled = new Map<string, number>();
  #current: string;
  #namedInTurn = 0;
  #following: { readonly name: string; isOpen: boolean } | undefined;

  constructor(deps: {
    directory: string;
    /** Directory below chunks/ that is already remembered as open. */
    firstDirectory: string;
    random: Random;
    openDirectories: OpenDirectories;
    failed: (reason: string) => void;
  }) {
    this.#directory = deps.directory;
    this.#random = deps.random;
    this.#openDirectories = deps.openDirectories;
    this.#failed = deps.failed;
    this.#current = deps.firstDirectory;
  }

  /** Returns a new name in the current directory. Each must be settled once. */
  takeName(): string {
    if (++this.#namedInTurn >= CHUNKS_PER_DIRECTORY_TURN) this.#turn();
    this.#unsettled.set(this.#current, (this.#unsettled.get(this.#current) ?? 0) + 1);
    return this.#current + this.#random.bytes(CHUNK_NAME_RANDOM_BYTES).toString("hex");
  }

  /** Takes the name of a chunk that comes from another node. It must be settled once, as one's own. */
  async adoptName(name: string): Promise<void> {
    const directory = directoryOfChunk(name);
    this.#unsettled.set(directory, (this.#unsettled.get(directory) ?? 0) + 1);
    if (directory !== this.#current) await this.#openDirectories.open(directory);
  }

  /** Marks names as settled: the chunks have rows now, or no files any more. */
  settle(names: readonly string[]): void {
    for (const name of names) {
      const directory = directoryOfChunk(name);
      const left = (this.#unsettled.get(directory) ?? 0) - 1;
      if (left > 0) {
        this.#unsettled.set(directory, left);
        continue;
      }
      this.#unsettled.delete(directory);
      // The next one is remembered ahead of its first name.
      if (directory === this.#current || directory === this.#following?.name) continue;
      // After a failure this call is refused; start-up then sweeps a directory in vain.
      this.#openDirectories.close(directory).catch(() => undefined);
    }
  }

  /** Records that the next start has nothing to sweep, if that is so. */
  async close(): Promise<void> {
    if (this.#unsettled.size > 0) return;
    await this.#openDirectories.close(this.#current).catch(() => undefined);
  }

  pathOf(name: string): string {
    return chunkPath(this.#directory, name);
  }

  /** Creates the file of a chunk; refuses an existing one. */
  create(name: string): Promise<number> {
    return openFile(this.pathOf(name), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  }

  /** Puts a user's chunk on stable storage and closes it. A failure is reported, thrown and never retried. */
  async flushAndClose(party: string, descriptor: number): Promise<void> {
    try {
      await this.#flushes.run(party, () => flushData(descriptor));
      await closeFile(descriptor);
    } catch (error) {
      this.#failed(`flushing a chunk file failed: ${String(error)}`);
      throw error;
    }
  }

  /** Closes a file that the caller will unlink. */
  async discard(descriptor: number): Promise<void> {
    await closeFile(descriptor).catch(() => undefined);
  }

  /** Puts these chunks' directory entries on stable storage; concurrent calls share a flush. */
  async flushDirectoriesOf(names: readonly string[]): Promise<void> {
    const directories = new Set(names.map(directoryOfChunk));
    await Promise.all([...directories].map((directory) => this.#flushDirectory(directory)));
  }

  /** Unlinks a chunk's file; a missing one is no error. */
  async unlink(name: string): Promise<void> {
    try {
      await unlinkFile(this.pathOf(name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }

  /**
   * A flush under way may have begun before the caller's file existed: the caller shares the one after it.
   */
  #flushDirectory(directory: string): Promise<void> {
    const running = this.#directoryFlushes.get(directory);
    if (running === undefined) {
      const flush: DirectoryFlush = { promise: this.#syncDirectory(directory), next: undefined };
      this.#directoryFlushes.set(directory, flush);
      this.#whenDone(directory, flush);
      return flush.promise;
    }
    running.next ??= running.promise.then(() => this.#syncDirectory(directory));
    return running.next;
  }

  #whenDone(directory: string, flush: DirectoryFlush): void {
    const goOn = (): void => {
      if (flush.next === undefined) {
        this.#directoryFlushes.delete(directory);
        return;
      }
      const next: DirectoryFlush = { promise: flush.next, next: undefined };
      this.#directoryFlushes.set(directory, next);
      this.#whenDone(directory, next);
    };
    flush.promise.then(goOn, goOn);
  }

  async #syncDirectory(directory: string): Promise<void> {
    let isOpen = false;
    try {
      const descriptor = await openFile(
        join(this.#directory, CHUNKS_DIRECTORY, directory),
        constants.O_RDONLY,
      );
      isOpen = true;
      try {
        await this.#flushes.run("", () => flushAll(descriptor));
      } finally {
        await closeFile(descriptor);
      }
    } catch (error) {
      // Without a descriptor no flush has been tried.
      if (!isOpen && lacksDescriptors(error)) throw error;
      this.#failed(`flushing a directory of chunk files failed: ${String(error)}`);
      throw error;
    }
  }

  /** Moves to the next directory once it is remembered as open; until then the present one stays in use. */
  #turn(): void {
    const following = this.#following;
    if (following === undefined) {
      const next = { name: nextDirectory(this.#current), isOpen: false };
      this.#following = next;
      const opened = this.#openDirectories.open(next.name);
      opened.then(
        () => {
          next.isOpen = true;
        },
        () => {
          this.#following = undefined;
        },
      );
    } else if (following.isOpen) {
      const left = this.#current;
      this.#current = following.name;
      this.#following = undefined;
      this.#namedInTurn = 0;
      if (!this.#unsettled.has(left)) {
        this.#openDirectories.close(left).catch(() => undefined);
      }
    }
  }
}

interface DirectoryFlush {
  readonly promise: Promise<void>;
  /** The flush after this one, once a caller waits for it. */
  next: Promise<void> | undefined;
}
