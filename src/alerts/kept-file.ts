// A small JSON file that is replaced as a whole: read once at the start, written when its content has changed (A-10, D18).
import { readFile } from "node:fs/promises";
import type { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { setAside } from "#os/set-aside.ts";

/** The schema that this version writes; a newer one is refused rather than overwritten (D18). */
const SCHEMA = 1;

/** Which file, and what must be in it. */
export interface KeptFileOptions<T> {
  readonly path: string;
  readonly shape: z.ZodType<T>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The file. Its folder must be there. */
export class KeptFile<T extends object> {
  readonly #path: string;
  /** What waits for the write under way; only the newest is written. */
  #next: { readonly content: T; readonly written: PromiseWithResolvers<void> } | undefined;
  #isWriting = false;
  #failure: GroveError | undefined;

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * Opens the file; its content is undefined when there is none, or when it is damaged: then it is set aside as `setAsideAs`,
   * `.corrupt-<time>`, and logged. Throws BAD_ARGUMENT for the file of a newer version.
   */
  static async open<T extends object>(
    options: KeptFileOptions<T>,
  ): Promise<{
    readonly file: KeptFile<T>;
    readonly content: T | undefined;
    readonly setAsideAs: string | undefined;
  }> {
    const { path } = options;
    await removeLeftovers(path);
    const file = new KeptFile<T>(path);
    const text = await readFile(path, "utf8").catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw new GroveError("STORAGE_FAILED", `cannot read ${path}`, { cause: error });
    });
    if (text === undefined) return { file, content: undefined, setAsideAs: undefined };
    const parsed = parse(text);
    if (typeof parsed?.schema === "number" && parsed.schema > SCHEMA) {
      throw new GroveError("BAD_ARGUMENT", `${path} was written by a newer Grove; run that one`);
    }
    const checked = parsed?.schema === SCHEMA ? options.shape.safeParse(parsed.content) : undefined;
    if (checked?.success === true) return { file, content: checked.data, setAsideAs: undefined };
    return { file, content: undefined, setAsideAs: await setAside(path, options) };
  }

  /**
   * Writes the content; resolves when it, or newer content, is on stable storage. Throws STORAGE_FAILED; after a failed flush for good,
   * since a flush is never tried again.
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
        await writeFileAtomic(this.#path, `${JSON.stringify({ schema: SCHEMA, content: job.content })}\n`);
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

function parse(text: string): { readonly schema?: unknown; readonly content?: unknown } | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? parsed : undefined;
  } catch {
    return undefined;
  }
}
