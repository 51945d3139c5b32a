// Blocks of chunks on the local disk: bounded, least recently used, kept over restarts, never trusted.
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rm, stat, statfs, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { BLOCK_BYTES } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";

/** Default bound of the cache on the disk: 10 GB. */
export const READ_CACHE_BYTES = 10_000_000_000;
/** Entries, each for one chunk; they cost some hundred bytes of memory. */
export const READ_CACHE_ENTRIES = 65_536;

const HEADER_BYTES = 4_096;
const MASK_AT = 64;
const NAME = /^[0-9a-f]{34}$/;
/** How often the free space of the disk is looked at, and the use of an entry is written down. */
const SPACE_LOOK_MS = 1_000;
const TOUCH_MS = 60_000;
const HANDLES_KEPT = 128;

interface Entry {
  bytes: number;
  /** A bit for each block that the file has; undefined until its header was read after a restart. */
  mask: number | undefined;
  touchedMs: number;
  /** Writes under way, one after the other. */
  writing: Promise<unknown> | undefined;
  handle: Promise<FileHandle> | undefined;
  readers: number;
  isDropped: boolean;
}

/** Dependencies. */
export interface ReadCacheDeps {
  /** A folder of its own; it is made, and foreign files in it go. */
  readonly folder: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Bytes on the disk; 0 for no cache. */
  readonly limitBytes: number;
  /** Free bytes that the disk keeps: the cache gives way. */
  readonly reserveBytes: bigint;
  /** Free bytes of the folder's disk, in place of asking the system. */
  readonly freeBytes?: () => Promise<bigint>;
}

/**
 * A file for each chunk, with a header and holes for blocks that are not there. Nothing is flushed: readers
 * check every block against its row, so that a torn or exchanged file costs a second fetch and no more.
 */
export class ReadCache {
  readonly #deps: ReadCacheDeps;
  /** In the order of use, the oldest first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  /** Bytes of writes that have been let in and are not counted yet. */
  #promised = 0;
  #handles = 0;
  #free: bigint = 0n;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  private constructor(deps: ReadCacheDeps) {
    this.#deps = deps;
  }

  /** Opens the folder with what an earlier process left there. */
  static async open(deps: ReadCacheDeps): Promise<ReadCache> {
    const cache = new ReadCache(deps);
    await mkdir(deps.folder, { recursive: true, mode: 0o700 });
    await cache.#find();
    await cache.#makeRoom(0);
    return cache;
  }

  /** Bytes and entries on the disk. */
  get size(): { readonly bytes: number; readonly entries: number } {
    return { bytes: this.#bytes, entries: this.#entries.size };
  }

  /** Whether a block is there, as far as memory knows. */
  mayHave(name: string, block: number): boolean {
    const entry = this.#entries.get(name);
    return entry !== undefined && (entry.mask === undefined || (entry.mask & (1 << block)) !== 0);
  }

  /** Bytes of a block, unchecked; undefined when they are not there. */
  async read(name: string, block: number, byteCount: number): Promise<Buffer | undefined> {
    const entry = this.#entries.get(name);
    if (entry === undefined || this.#isClosed || !this.mayHave(name, block)) return undefined;
    this.#use(name, entry);
    entry.readers++;
    try {
      const handle = await this.#handleOf(name, entry);
      entry.mask ??= await maskOf(handle, name);
      if ((entry.mask & (1 << block)) === 0) return undefined;
      const bytes = Buffer.allocUnsafeSlow(byteCount);
      const { bytesRead } = await handle.read(bytes, 0, byteCount, HEADER_BYTES + block * BLOCK_BYTES);
      if (bytesRead === byteCount) return bytes;
      await this.drop(name);
      return undefined;
    } catch {
      await this.drop(name);
      return undefined;
    } finally {
      entry.readers--;
      if (entry.isDropped) this.#close(entry);
    }
  }

  /** Keeps a block that its reader has checked. True when it is there afterwards. */
  async write(name: string, block: number, bytes: Buffer): Promise<boolean> {
    if (this.#isClosed || !NAME.test(name)) return false;
    const promised = bytes.length + HEADER_BYTES;
    if (!(await this.#makeRoom(promised).catch((error: unknown) => this.#failed(error)))) return false;
    if (this.#isClosed) {
      this.#promised -= promised;
      return false;
    }
    const entry = this.#entries.get(name) ?? this.#add(name);
    const write = (entry.writing ?? Promise.resolve()).then(() => this.#write(name, entry, block, bytes));
    entry.writing = write;
    try {
      return await write;
    } catch (error) {
      await this.drop(name);
      return this.#failed(error);
    } finally {
      this.#promised -= promised;
      if (entry.writing === write) entry.writing = undefined;
    }
  }

  /** Removes a chunk, for instance since a block was not what its row says. */
  async drop(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    this.#entries.delete(name);
    this.#bytes -= entry.bytes;
    entry.isDropped = true;
    if (entry.readers === 0) this.#close(entry);
    await rm(this.#path(name), { force: true }).catch(() => undefined);
  }

  /** Ends; the files stay for the next process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled([...this.#entries.values()].map(async ({ writing }) => writing));
    for (const entry of this.#entries.values()) this.#close(entry);
  }

  #failed(error: unknown): false {
    this.#deps.logger.debug("store.cache_write_failed", { error: errorText(error) });
    return false;
  }

  async #write(name: string, entry: Entry, block: number, bytes: Buffer): Promise<boolean> {
    if (entry.isDropped) return false;
    entry.readers++;
    try {
      const handle = await this.#handleOf(name, entry);
      entry.mask ??= await maskOf(handle, name);
      const bit = 1 << block;
      if ((entry.mask & bit) !== 0) return true;
      await handle.write(bytes, 0, bytes.length, HEADER_BYTES + block * BLOCK_BYTES);
      await handle.write(headerOf(name, entry.mask | bit), 0, MASK_AT + 4, 0);
      if (entry.isDropped) return false;
      entry.mask |= bit;
      entry.bytes += bytes.length;
      this.#bytes += bytes.length;
      return true;
    } finally {
      entry.readers--;
      if (entry.isDropped) this.#close(entry);
    }
  }

  #add(name: string): Entry {
    const touchedMs = this.#deps.clock.steadyMs();
    const entry: Entry = {
      bytes: HEADER_BYTES,
      mask: 0,
      touchedMs,
      writing: undefined,
      handle: undefined,
      readers: 0,
      isDropped: false,
    };
    this.#entries.set(name, entry);
    this.#bytes += HEADER_BYTES;
    return entry;
  }

  #use(name: string, entry: Entry): void {
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    const nowMs = this.#deps.clock.steadyMs();
    if (nowMs - entry.touchedMs < TOUCH_MS) return;
    entry.touchedMs = nowMs;
    // The next process orders by these times.
    const at = new Date(this.#deps.clock.wallMs());
    utimes(this.#path(name), at, at).catch(() => undefined);
  }

  #handleOf(name: string, entry: Entry): Promise<FileHandle> {
    if (entry.handle === undefined) {
      this.#handles++;
      entry.handle = open(this.#path(name), constants.O_RDWR | constants.O_CREAT, 0o600);
      if (this.#handles > HANDLES_KEPT) this.#closeUnused();
    }
    return entry.handle;
  }

  #closeUnused(): void {
    for (const entry of this.#entries.values()) {
      if (this.#handles <= HANDLES_KEPT / 2) return;
      if (entry.readers === 0) this.#close(entry);
    }
  }

  #close(entry: Entry): void {
    if (entry.handle === undefined) return;
    entry.handle.then((handle) => handle.close()).catch(() => undefined);
    entry.handle = undefined;
    this.#handles--;
  }

  /**
   * Removes the least recently used until so many bytes fit beside the rest and the disk's reserve. They are
   * promised in the same turn of the loop, so that writes beside each other stay within the bound together.
   */
  async #makeRoom(bytes: number): Promise<boolean> {
    const { limitBytes, reserveBytes } = this.#deps;
    if (bytes > limitBytes) return false;
    await this.#look();
    const isWithin = (): boolean => this.#bytes + this.#promised + bytes <= limitBytes;
    for (const [name, entry] of this.#entries) {
      const fits = isWithin() && this.#entries.size < READ_CACHE_ENTRIES;
      if (fits && this.#free - BigInt(bytes) >= reserveBytes) break;
      if (entry.writing !== undefined) continue;
      this.#free += BigInt(entry.bytes);
      await this.drop(name);
    }
    this.#free -= BigInt(bytes);
    if (this.#free < reserveBytes || !isWithin()) return false;
    this.#promised += bytes;
    return true;
  }

  async #look(): Promise<void> {
    const nowMs = this.#deps.clock.steadyMs();
    if (nowMs - this.#lookedMs < SPACE_LOOK_MS) return;
    this.#lookedMs = nowMs;
    const { folder, freeBytes } = this.#deps;
    // It may have been removed in use; where its parent is gone too, nothing is cached.
    await mkdir(folder, { mode: 0o700 }).catch(() => undefined);
    this.#free =
      freeBytes === undefined
        ? await statfs(folder, { bigint: true }).then(({ bavail, bsize }) => bavail * bsize)
        : await freeBytes();
  }

  async #find(): Promise<void> {
    const found: { name: string; bytes: number; usedMs: number }[] = [];
    for (const name of await readdir(this.#deps.folder)) {
      const path = this.#path(name);
      const facts = NAME.test(name) ? await stat(path) : undefined;
      if (facts?.isFile() === true) {
        found.push({ name, bytes: facts.blocks * 512, usedMs: facts.mtimeMs });
      } else await rm(path, { recursive: true, force: true });
    }
    for (const { name, bytes } of found.toSorted((a, b) => a.usedMs - b.usedMs)) {
      const entry = this.#add(name);
      entry.mask = undefined;
      this.#bytes += bytes - entry.bytes;
      entry.bytes = bytes;
    }
  }

  #path(name: string): string {
    return join(this.#deps.folder, name);
  }
}

/** The header of a chunk's file: whose it is, and which blocks it has. */
function headerOf(name: string, mask: number): Buffer {
  const header = Buffer.alloc(MASK_AT + 4);
  header.write(`grove-cache-1 ${name}`);
  header.writeUInt32LE(mask, MASK_AT);
  return header;
}

/** Blocks of a file; none for another chunk's, so that it is never read as this one. */
async function maskOf(handle: FileHandle, name: string): Promise<number> {
  const header = Buffer.alloc(MASK_AT + 4);
  await handle.read(header, 0, header.length, 0);
  const mask = header.readUInt32LE(MASK_AT);
  if (header.equals(headerOf(name, mask))) return mask;
  await handle.truncate(0);
  return 0;
}
