// Chunk files kept open for reading: a bounded number, shared by readers of the same chunk.
import { close, constants, open } from "node:fs";
import { promisify } from "node:util";

/** Chunk files kept open for reading. */
const OPEN_CHUNK_FILES = 256;

const openFile = promisify(open);
const closeFile = promisify(close);

interface OpenFile {
  readonly descriptor: Promise<number>;
  users: number;
}

/**
 * Opens chunk files on demand and closes the least recently used. Chunk files never change, so descriptors
 * stay valid.
 */
export class OpenChunkFiles {
  readonly #pathOf: (name: string) => string;
  readonly #limit: number;
  /** In order of last use. */
  readonly #files = new Map<string, OpenFile>();

  constructor(pathOf: (name: string) => string, limit: number = OPEN_CHUNK_FILES) {
    this.#pathOf = pathOf;
    this.#limit = limit;
  }

  /** Runs the operation on the chunk's file, which stays open until it ends. */
  async use<T>(name: string, operation: (descriptor: number) => Promise<T>): Promise<T> {
    const file = this.#files.get(name) ?? {
      descriptor: openFile(this.#pathOf(name), constants.O_RDONLY),
      users: 0,
    };
    this.#files.delete(name);
    this.#files.set(name, file);
    file.users++;
    try {
      return await operation(await file.descriptor);
    } catch (error) {
      // The next reader reopens it.
      if (this.#files.get(name) === file) this.#drop(name, file);
      throw error;
    } finally {
      file.users--;
      if (this.#files.get(name) !== file && file.users === 0) this.#close(file);
      this.#shrink();
    }
  }

  /** Closes unused files; the last user of each other one closes it. */
  closeAll(): void {
    for (const [name, file] of this.#files) this.#drop(name, file);
  }

  /** Gives the space of an unlinked chunk back to the disk. */
  forget(name: string): void {
    const file = this.#files.get(name);
    if (file !== undefined) this.#drop(name, file);
  }

  #shrink(): void {
    if (this.#files.size <= this.#limit) return;
    for (const [name, file] of this.#files) {
      if (file.users > 0) continue;
      this.#drop(name, file);
      if (this.#files.size <= this.#limit) return;
    }
  }

  #drop(name: string, file: OpenFile): void {
    this.#files.delete(name);
    if (file.users === 0) this.#close(file);
  }

  #close(file: OpenFile): void {
    // A failed close loses nothing for a reader.
    file.descriptor.then(closeFile).catch(() => undefined);
  }
}
