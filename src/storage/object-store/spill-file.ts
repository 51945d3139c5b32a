// A chunk that gathers on the local disk, in a file without a name: it goes with the process.
import { constants } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Random } from "#base/random.ts";
import type { RequestBody } from "./store-exchange.ts";

const READ_BYTES = 262_144;

/** Takes bytes in order, then gives them as often as they are sent. */
export class SpillFile {
  readonly #handle: Promise<FileHandle>;
  #byteCount = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string, random: Random) {
    this.#handle = openUnnamed(join(folder, `${random.bytes(16).toString("hex")}.spill`));
    this.#handle.catch(() => undefined);
  }

  /** Resolves when the slices may change. */
  append(slices: readonly Buffer[], byteCount: number): Promise<void> {
    const at = this.#byteCount;
    this.#byteCount += byteCount;
    const write = this.#last.then(() => this.#write(slices, byteCount, at));
    this.#last = write;
    return write;
  }

  /** The bytes, once all are written. */
  async body(): Promise<RequestBody> {
    await this.#last;
    const handle = await this.#handle;
    return { byteCount: this.#byteCount, slices: () => piecesOf(handle, this.#byteCount) };
  }

  /** Gives its space back. */
  async close(): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#handle.then((handle) => handle.close()).catch(() => undefined);
  }

  async #write(slices: readonly Buffer[], byteCount: number, at: number): Promise<void> {
    const { bytesWritten } = await (await this.#handle).writev([...slices], at);
    // Only a full disk makes short writes.
    if (bytesWritten < byteCount) {
      throw Object.assign(new Error("the disk is full"), { code: "ENOSPC" });
    }
  }
}

async function openUnnamed(path: string): Promise<FileHandle> {
  const handle = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600);
  await rm(path, { force: true });
  return handle;
}

async function* piecesOf(handle: FileHandle, byteCount: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < byteCount; ) {
    const piece = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, byteCount - at));
    const { bytesRead } = await handle.read(piece, 0, piece.length, at);
    if (bytesRead === 0) throw new Error("a spilled chunk is too short");
    at += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}
