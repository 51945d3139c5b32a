// A log file of bounded size, with one older file beside it.
import { mkdirSync } from "node:fs";
import { type FileHandle, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { Writable } from "node:stream";

/** Bytes of one log file; with the older one a process keeps twice as much. */
export const LOG_FILE_MAX_BYTES: number = 8 * 1_048_576;

/**
 * Appends to a file of mode 0600, moving a full one to `<path>.1`. A failing disk loses lines, never the
 * writer.
 */
export class BoundedLog extends Writable {
  readonly #path: string;
  readonly #maxBytes: number;
  #file: FileHandle | undefined;
  #bytes = 0;

  constructor(path: string, maxBytes: number = LOG_FILE_MAX_BYTES) {
    super();
    this.#path = path;
    this.#maxBytes = maxBytes;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    void this.#append(chunk).finally(() => done());
  }

  override _final(done: () => void): void {
    void this.#close().finally(() => done());
  }

  async #append(chunk: Buffer): Promise<void> {
    try {
      await this.#appendOrFail(chunk);
    } catch {
      // On a full or broken disk the next lines try again from the start.
      await this.#close();
    }
  }

  async #close(): Promise<void> {
    await this.#file?.close().catch(() => undefined);
    this.#file = undefined;
  }

  async #appendOrFail(chunk: Buffer): Promise<void> {
    if (this.#file === undefined) {
      this.#file = await open(this.#path, "a", 0o600);
      this.#bytes = (await this.#file.stat()).size;
    }
    if (this.#bytes > 0 && this.#bytes + chunk.length > this.#maxBytes) {
      await this.#file.close();
      this.#file = undefined;
      await rename(this.#path, `${this.#path}.1`);
      this.#file = await open(this.#path, "a", 0o600);
      this.#bytes = 0;
    }
    await this.#file.appendFile(chunk);
    this.#bytes += chunk.length;
  }
}

/** The last lines of a log, for people; empty when there is none. */
export async function lastLines(path: string, count: number): Promise<string> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.trimEnd().split("\n").slice(-count).join("\n");
}
