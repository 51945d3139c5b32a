// Writes a received file to a temporary one beside its place and renames it once it is complete.
import { randomBytes } from "node:crypto";
import {
  close,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsync,
  futimes,
  futimesSync,
  lstatSync,
  open,
  openSync,
  readdirSync,
  renameSync,
  type Stats,
  unlinkSync,
  write,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { DOWNLOAD_BLOCK_BYTES, DOWNLOAD_BLOCKS_MAX } from "#client/terminal/limits.ts";
import { ownMark } from "#os/process-alive.ts";
import { isLeft } from "./part-owner.ts";
import { modeWhileFilling, rightsAt, takeRights } from "./replaced-file.ts";

const openFile = promisify(open);
const closeFile = promisify(close);
const flushFile = promisify(fsync);
const setTimes = promisify(futimes);
const writeFile = promisify(write);

/** O_EXCL and O_NOFOLLOW: never writes through an existing file or symbolic link (failure B-09). */
const WRITE_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** O_NONBLOCK: opening a pipe does not wait for its other end. */
const APPEND_FLAGS =
  constants.O_WRONLY |
  constants.O_CREAT |
  constants.O_APPEND |
  constants.O_NOFOLLOW |
  (constants.O_NONBLOCK ?? 0);

/** Temporary files of this process before their renaming. */
const unfinished = new Set<string>();

/** Removes the temporary files of unfinished transfers; for a program that is about to exit. */
export function removeUnfinishedFiles(): void {
  for (const path of unfinished) {
    try {
      unlinkSync(path);
    } catch {
      // Renamed or removed already.
    }
  }
  unfinished.clear();
}

/** O_EXCL alone keeps files apart, so one random part for the whole process is enough. */
const RANDOM_PART = randomBytes(9).toString("base64url");
const TEMPORARY_NAME = /^\.grove-get-[\w-]{12}-(\w{1,80})-\d{1,16}\.part$/;
let made = 0;

/** Removes temporary files of dead processes from a folder; those of live ones and of this one stay. */
export function removeLeftFiles(folder: string): void {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return;
  }
  for (const name of names) {
    const owner = TEMPORARY_NAME.exec(name)?.[1];
    const path = join(folder, name);
    if (owner === undefined || unfinished.has(path) || !isLeft(path, owner)) continue;
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats !== undefined && isOwn(stats)) removeQuietly(path);
  }
}

function temporaryPath(folder: string): string {
  return join(folder, `.grove-get-${RANDOM_PART}-${ownMark()}-${++made}.part`);
}

/**
 * Puts a small file into its place in one go, with its time of change and the rights of the file before.
 * Nothing is awaited unless a file is replaced. Rejects with ClientError.
 */
export async function writeSmallFile(
  folder: string,
  name: string,
  data: Uint8Array,
  mtimeMs: number,
): Promise<void> {
  const temporary = temporaryPath(folder);
  const path = join(folder, name);
  try {
    unfinished.add(temporary);
    const replaced = rightsAt(path);
    const descriptor = openSync(temporary, WRITE_FLAGS, modeWhileFilling(replaced));
    try {
      let at = 0;
      while (at < data.length) at += writeSync(descriptor, data, at);
      futimesSync(descriptor, new Date(), timeOf(mtimeMs));
      if (replaced !== undefined) takeRights(descriptor, replaced);
      if (isTaken(path)) await flush(descriptor);
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

/** A file's time for the system. As a number of seconds, Node takes one before 1970 for now. */
function timeOf(mtimeMs: number): Date {
  return new Date(mtimeMs);
}

/** False for a file of another owner or with another link: it could change after its bytes were checked. */
function isOwn(stats: Stats): boolean {
  const isOurs = process.geteuid === undefined || stats.uid === process.geteuid();
  return isOurs && stats.isFile() && stats.nlink === 1;
}

function isTaken(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/**
 * Puts a file's bytes on the disk before it takes the name of another one: after a power cut the name may lead to
 * the new file, which then is whole. A new name has nothing to lose.
 */
async function flush(descriptor: number): Promise<void> {
  try {
    await flushFile(descriptor);
  } catch (error) {
    // Some network disks and pseudo file systems have nothing to flush.
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EINVAL", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"].includes(code)) throw error;
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // No file there.
  }
}

/** A buffer that is being filled, or waits for the disk. */
interface Block {
  readonly buffer: Buffer;
  length: number;
}

/**
 * Writes a large file. Copies slices into a few large blocks, so that socket buffers are freed at once:
 * keeping them costs the garbage collector more.
 */
export class LocalFileWriter {
  readonly #path: string;
  readonly #temporary: string;
  readonly #descriptor: number;
  /** Bytes that were there when it was opened. */
  readonly lengthBytes: number;
  #isOpen = true;
  readonly #free: Block[] = [];
  #blockCount = 0;
  #filling: Block | undefined;
  #writing: Promise<void> | undefined;
  readonly #waiting: Block[] = [];
  #failure: Error | undefined;
  /** Bytes that the file should have by now. */
  #expectedBytes: number;
  /** True for a part with strange bytes, or after a failed flush: another one may succeed although bytes are lost. */
  #isUnsure = false;

  private constructor(path: string, temporary: string, descriptor: number, lengthBytes = 0) {
    this.#path = path;
    this.lengthBytes = lengthBytes;
    this.#expectedBytes = lengthBytes;
    this.#temporary = temporary;
    this.#descriptor = descriptor;
  }

  /** Opens the temporary file in the target folder. Rejects with ClientError. */
  static async create(folder: string, name: string): Promise<LocalFileWriter> {
    const path = join(folder, name);
    const temporary = temporaryPath(folder);
    unfinished.add(temporary);
    try {
      const mode = modeWhileFilling(rightsAt(path));
      return new LocalFileWriter(path, temporary, await openFile(temporary, WRITE_FLAGS, mode));
    } catch (error) {
      unfinished.delete(temporary);
      throw localFailure(error, path);
    }
  }

  /**
   * Opens the part of a file that an earlier download left, or begins one there. Undefined where that fails,
   * or the file there is not a download of this user.
   */
  static async goOn(folder: string, name: string, partial: string): Promise<LocalFileWriter | undefined> {
    const path = join(folder, name);
    let descriptor: number;
    try {
      const mode = modeWhileFilling(rightsAt(path));
      descriptor = await openFile(partial, APPEND_FLAGS, mode);
      const stats = fstatSync(descriptor);
      if (isOwn(stats)) {
        if ((stats.mode & 0o777 & ~mode) !== 0) fchmodSync(descriptor, stats.mode & mode);
        return new LocalFileWriter(path, partial, descriptor, stats.size);
      }
    } catch {
      return undefined;
    }
    await closeFile(descriptor);
    return undefined;
  }

  /** Takes the next slice, whose buffer is free when this is true. Await a promise before the next one. */
  write(slice: Uint8Array): true | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    let at = 0;
    while (at < slice.length) {
      const block = this.#filling ?? this.#freeBlock();
      if (block === undefined) return this.#writeLater(slice.subarray(at));
      this.#filling = block;
      const part = slice.subarray(at, at + block.buffer.length - block.length);
      block.buffer.set(part, block.length);
      block.length += part.length;
      at += part.length;
      if (block.length === block.buffer.length) this.#send(block);
    }
    return true;
  }

  /**
   * Writes the rest, sets the time of change and renames the file, with the rights of the one before. Rejects
   * with ClientError.
   */
  async finish(mtimeMs: number): Promise<void> {
    if (this.#filling !== undefined) this.#send(this.#filling);
    await this.#writing;
    if (this.#failure !== undefined) throw this.#failure;
    try {
      this.#checkLength();
      await setTimes(this.#descriptor, new Date(), timeOf(mtimeMs));
      const replaced = rightsAt(this.#path);
      if (replaced !== undefined) takeRights(this.#descriptor, replaced);
      if (isTaken(this.#path)) {
        this.#isUnsure = true;
        await flush(this.#descriptor);
        this.#isUnsure = false;
      }
      await this.#close();
      renameSync(this.#temporary, this.#path);
    } catch (error) {
      throw localFailure(error, this.#path);
    }
    unfinished.delete(this.#temporary);
  }

  /** Another machine that goes on with the same part after a long rest would have put its bytes between these. */
  #checkLength(): void {
    if (fstatSync(this.#descriptor).size === this.#expectedBytes) return;
    this.#isUnsure = true;
    throw new ClientError(
      "LOCAL_FILE",
      `${this.#path}: another program wrote to the part of it that was there`,
      {
        todo: "Fetch it again.",
      },
    );
  }

  /** Keeps the written part for another download, unless it is unsure; the name stays as it was. */
  async leave(): Promise<void> {
    if (this.#isUnsure) return this.discard();
    if (this.#filling !== undefined) this.#send(this.#filling);
    await this.#writing;
    await this.#close().catch(() => undefined);
  }

  /** Removes the written part; the name stays as it was. */
  async discard(): Promise<void> {
    await this.#writing;
    await this.#close().catch(() => undefined);
    removeQuietly(this.#temporary);
    unfinished.delete(this.#temporary);
  }

  /** Closes once: a closed file's descriptor may belong to another file. */
  async #close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await closeFile(this.#descriptor);
  }

  #freeBlock(): Block | undefined {
    const block = this.#free.pop();
    if (block !== undefined || this.#blockCount === DOWNLOAD_BLOCKS_MAX) return block;
    this.#blockCount++;
    return { buffer: Buffer.allocUnsafeSlow(DOWNLOAD_BLOCK_BYTES), length: 0 };
  }

  #send(block: Block): void {
    this.#filling = undefined;
    this.#waiting.push(block);
    this.#writing ??= this.#writeWaiting();
  }

  /** Waits for the disk when all blocks are full. */
  async #writeLater(slice: Uint8Array): Promise<void> {
    while (this.#free.length === 0 && this.#failure === undefined) await this.#blockWritten();
    const written = this.write(slice);
    if (written !== true) await written;
  }

  #blockFreed: PromiseWithResolvers<void> | undefined;

  #blockWritten(): Promise<void> {
    this.#blockFreed ??= Promise.withResolvers();
    return this.#blockFreed.promise;
  }

  /** Writes until nothing waits. Never rejects: the next caller gets the failure. */
  async #writeWaiting(): Promise<void> {
    for (let block = this.#waiting.shift(); block !== undefined; block = this.#waiting.shift()) {
      try {
        if (this.#failure === undefined) await this.#writeBlock(block);
      } catch (error) {
        this.#failure = localFailure(error, this.#path) as Error;
      }
      block.length = 0;
      this.#free.push(block);
      this.#blockFreed?.resolve();
      this.#blockFreed = undefined;
    }
    this.#writing = undefined;
  }

  async #writeBlock(block: Block): Promise<void> {
    for (let at = 0; at < block.length; ) {
      const { bytesWritten } = await writeFile(this.#descriptor, block.buffer, at, block.length - at);
      at += bytesWritten;
      this.#expectedBytes += bytesWritten;
    }
  }
}
