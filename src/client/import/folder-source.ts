// A folder of this machine as the source of an import.
import { type Stats, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { resolve } from "node:path";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { READ_FLAGS, type SourceState, stateOf } from "#client/transfer/local-source.ts";
import { walkLocalTree } from "#client/transfer/local-tree.ts";
import { readChunks } from "#client/transfer/upload.ts";
import type { ImportEntry, ImportFile, ImportSource } from "./import-source.ts";

/** Reads a folder; links inside it count as their targets, others are left out (decision D13). */
export class FolderSource implements ImportSource {
  readonly name: string;
  readonly #top: string;

  constructor(path: string) {
    this.#top = path;
    this.name = resolve(path);
  }

  async *entries(): AsyncGenerator<ImportEntry, void, undefined> {
    requireFolder(this.#top);
    for await (const entry of walkLocalTree(this.#top)) {
      if (entry.kind === "folder") yield { kind: "folder", place: entry.place };
      else if (entry.kind === "skipped") {
        yield { kind: "skipped", place: entry.place ?? entry.localPath, why: entry.why };
      } else {
        const { place, folder, localPath: address, sizeBytes, mtimeMs } = entry;
        yield { kind: "file", place, folder, address, sizeBytes, mtimeMs, version: "" };
      }
    }
  }

  async look({ address }: ImportFile): Promise<SourceState> {
    return this.#with(address, async (handle) => stateOf(await handle.stat({ bigint: true }), address));
  }

  async *chunks({ address, sizeBytes }: ImportFile, fromBytes: number): AsyncGenerator<Buffer> {
    const handle = await opened(address);
    try {
      yield* readChunks(handle, address, sizeBytes, fromBytes);
    } finally {
      await handle.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing is held between files.
  }

  async #with<T>(path: string, work: (handle: FileHandle) => Promise<T>): Promise<T> {
    const handle = await opened(path);
    try {
      return await work(handle);
    } finally {
      await handle.close();
    }
  }
}

/** Throws ClientError for what is there and is no folder. */
function requireFolder(path: string): void {
  let stats: Stats | undefined;
  try {
    stats = statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw localFailure(error, path);
  }
  if (stats === undefined || stats.isDirectory()) return;
  throw new ClientError("LOCAL_FILE", "is not a folder", {
    about: path,
    todo: "Name the folder that it is in; 'grove put' sends single files.",
  });
}

async function opened(path: string): Promise<FileHandle> {
  try {
    return await open(path, READ_FLAGS);
  } catch (error) {
    throw localFailure(error, path);
  }
}
