// A small JSON file that is read at the start and replaced as a whole after changes (A-10, D18).
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { setAside } from "#os/set-aside.ts";
import { readStateFile } from "#os/state-file.ts";

/** The path and schema of a file. */
export interface JsonStateFileOptions<T> {
  readonly path: string;
  readonly shape: z.ZodType<T>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The file. Its folder must exist. */
export class JsonStateFile<T extends object> {
  readonly #path: string;
  /** The content that waits for the write in progress; only the newest is written. */
  #next: { readonly content: T; readonly written: PromiseWithResolvers<void> } | undefined;
  #isWriting = false;
  #failure: GroveError | undefined;

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * Opens the file. Its content is undefined for a missing or damaged one; a damaged file is logged and
   * renamed to `setAsideAs`, `.corrupt-<time>`. Throws BAD_ARGUMENT for the file of a newer version.
   */
  static async open<T extends object>(
    options: JsonStateFileOptions<T>,
  ): Promise<{
    readonly file: JsonStateFile<T>;
    readonly content: T | undefined;
    readonly setAsideAs: string | undefined;
  }> {
    const { path } = options;
    await removeLeftovers(path);
    const file = new JsonStateFile<T>(path);
    const found = await readStateFile(path, z.object({ schema: z.literal(1), content: options.shape }));
    if (typeof found !== "string") return { file, content: found.content, setAsideAs: undefined };
    const setAsideAs = found === "broken" ? await setAside(path, options) : undefined;
    return { file, content: undefined, setAsideAs };
  }

  /**
   * Writes the content; resolves when it, or newer content, is on stable storage. Throws STORAGE_FAILED, and
   * after a failed flush always, because a flush is never retried.
   */
  save(content: T): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const written = this.#next?.written ?? Promise.withResolvers<void>();
    this.#next = { content, written };
    if (!this.#isWriting) void this.#write();
    return written.promise;
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    for (let job = this.#next; job !== undefined; job = this.#next) {
      this.#next = undefined;
      try {
        if (this.#failure !== undefined) throw this.#failure;
        await writeFileAtomic(this.#path, `${JSON.stringify({ schema: 1, content: job.content })}\n`);
        job.written.resolve();
      } catch (error) {
        const failure = new GroveError("STORAGE_FAILED", `${this.#path} could not be written`, {
          cause: error,
        });
        if (isGroveError(error, "STORAGE_FAILED")) this.#failure ??= failure;
        job.written.reject(failure);
      }
    }
    this.#isWriting = false;
  }
}
