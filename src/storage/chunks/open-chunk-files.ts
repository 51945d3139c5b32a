// Chunk files kept open for reading: a bounded number, shared by all who read the same chunk.
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

/** Opens chunk files on demand and closes those unused for longest. Chunk files never change, so a descriptor serves for good. */
export class OpenChunkFiles {
  readonly #pathOf: (name: string) => string;
  readonly #limit: number;
  /** In order of their last use. */
  readonly #files = new Map<string, OpenFile>();

  constructor(pathOf: (name: string) => string, limit: number = OPEN_CHUNK_FILES) {
    this.#pathOf = pathOf;
    this.#limit = limit;
  }

  /** Lets the operation use the chunk's file; it stays open until then. */
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
      // The next reader opens it anew.
      if (this.#files.get(name) === file) this.#drop(name, file);
      throw error;
    } finally {
      file.users--;
      if (this.#files.get(name) !== file && file.users === 0) this.#close(file);
      this.#shrink();
    }
  }

  /** Closes what is open and unused; what is in use is closed by its last user. */
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
    // Reading loses nothing by a failed close.
    file.descriptor.then(closeFile).catch(() => undefined);
  }
}
