// Writes a received file: into a temporary one beside its place, which takes the name only when all of it is there and right.
import { randomBytes } from "node:crypto";
import {
  close,
  closeSync,
  constants,
  futimes,
  futimesSync,
  open,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
  writev,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { localFailure } from "./client-error.ts";
import { DOWNLOAD_WAITING_MAX_BYTES, DOWNLOAD_WRITE_BYTES } from "./limits.ts";

const openFile = promisify(open);
const closeFile = promisify(close);
const setTimes = promisify(futimes);

/** O_EXCL and O_NOFOLLOW: what lies there under that name, a symbolic link say, is never written through (failure B-09). */
const WRITE_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const MODE = 0o666;

/** Temporary files of this process that have not got their names yet. */
const unfinished = new Set<string>();

/** Removes the temporary files of transfers that will not end any more; for a program that is about to be left. */
export function removeUnfinishedFiles(): void {
  for (const path of unfinished) {
    try {
      unlinkSync(path);
    } catch {
      // It has been renamed or removed already.
    }
  }
  unfinished.clear();
}

function temporaryPath(folder: string): string {
  return join(folder, `.grove-get-${randomBytes(9).toString("base64url")}.part`);
}

/** Puts a small file into its place in one go, with the time of change it had. Throws ClientError. */
export function writeSmallFile(folder: string, name: string, data: Uint8Array, mtimeMs: number): void {
  const temporary = temporaryPath(folder);
  const path = join(folder, name);
  try {
    unfinished.add(temporary);
    const descriptor = openSync(temporary, WRITE_FLAGS, MODE);
    try {
      let at = 0;
      while (at < data.length) at += writeSync(descriptor, data, at);
      futimesSync(descriptor, new Date(), mtimeMs / 1_000);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, path);
  } catch (error) {
    removeQuietly(temporary);
    throw localFailure(error, path);
  } finally {
    unfinished.delete(temporary);
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // There is none.
  }
}

/** A large file on its way to its place: takes slices in order and writes them many at a time. */
export class LocalFileWriter {
  readonly #path: string;
  readonly #temporary: string;
  readonly #descriptor: number;
  #isOpen = true;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;

  private constructor(path: string, temporary: string, descriptor: number) {
    this.#path = path;
    this.#temporary = temporary;
    this.#descriptor = descriptor;
  }

  /** Opens the temporary file in the folder that the file is for. Rejects with ClientError. */
  static async create(folder: string, name: string): Promise<LocalFileWriter> {
    const path = join(folder, name);
    const temporary = temporaryPath(folder);
    unfinished.add(temporary);
    try {
      return new LocalFileWriter(path, temporary, await openFile(temporary, WRITE_FLAGS, MODE));
    } catch (error) {
      unfinished.delete(temporary);
      throw localFailure(error, path);
    }
  }

  /** Takes the next slice, which must stay as it is. Await a promise before the next one. */
  write(slice: Uint8Array): true | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#waiting.push(slice);
    this.#waitingBytes += slice.length;
    if (this.#waitingBytes < DOWNLOAD_WRITE_BYTES) return true;
    this.#writing ??= this.#writeWaiting();
    return this.#waitingBytes < DOWNLOAD_WAITING_MAX_BYTES ? true : this.#flushed();
  }

  /** Writes the rest, sets the time of change and gives the file its name. Rejects with ClientError. */
  async finish(mtimeMs: number): Promise<void> {
    await this.#flushed();
    this.#writing = this.#writeWaiting();
    await this.#flushed();
    try {
      await setTimes(this.#descriptor, new Date(), mtimeMs / 1_000);
      await this.#close();
      renameSync(this.#temporary, this.#path);
    } catch (error) {
      throw localFailure(error, this.#path);
    }
    unfinished.delete(this.#temporary);
  }

  /** Removes what has been written; the name stays as it was. */
  async discard(): Promise<void> {
    await this.#writing?.catch(() => undefined);
    await this.#close().catch(() => undefined);
    removeQuietly(this.#temporary);
    unfinished.delete(this.#temporary);
  }

  /** Closes once: the number of a closed file may be another file's by now. */
  async #close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await closeFile(this.#descriptor);
  }

  async #flushed(): Promise<void> {
    await this.#writing;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Writes until nothing waits. It never rejects: the failure is told to whoever comes next. */
  async #writeWaiting(): Promise<void> {
    try {
      while (this.#waitingBytes > 0) {
        const slices = this.#waiting;
        const bytes = this.#waitingBytes;
        this.#waiting = [];
        await this.#writeAll(slices, bytes);
        this.#waitingBytes -= bytes;
      }
    } catch (error) {
      this.#failure = localFailure(error, this.#path) as Error;
    }
    this.#writing = undefined;
  }

  async #writeAll(slices: readonly Uint8Array[], bytes: number): Promise<void> {
    let left: readonly Uint8Array[] = slices;
    for (let total = 0; total < bytes; ) {
      const written = await this.#writeSome(left);
      total += written;
      if (total < bytes) left = withoutFirst(left, written);
    }
  }

  #writeSome(slices: readonly Uint8Array[]): Promise<number> {
    return new Promise((resolve, reject) => {
      writev(this.#descriptor, slices, (error, written) => {
        if (error === null) resolve(written);
        else reject(error);
      });
    });
  }
}

/** What is left of slices when so many bytes of them have been written. */
function withoutFirst(slices: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let skip = bytes;
  const left: Uint8Array[] = [];
  for (const slice of slices) {
    if (skip >= slice.length) skip -= slice.length;
    else {
      left.push(skip === 0 ? slice : slice.subarray(skip));
      skip = 0;
    }
  }
  return left;
}
