// The whole output of actions, one file of lines each; the number of an entry is where its line ends, so that any page is found at once (D7, D8).
import { type FileHandle, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import {
  ACTION_OUTPUT_OLD_BYTES,
  ACTION_OUTPUT_PAGE_BYTES,
  ACTION_OUTPUT_PAGE_ENTRIES,
  ACTION_RECORDS_WITH_OUTPUT,
} from "#base/limits.ts";
import type { OutputEntry, OutputLine } from "./action-output.ts";

/** One page of output. */
export interface OutputPage {
  readonly entries: readonly OutputEntry[];
  /** Number of the last entry looked at; the next page begins behind it. */
  readonly nextSeq: number;
  /** True when nothing lies behind this page now. */
  readonly isEnd: boolean;
}

/** Name of the folder in the console's data folder. */
const FOLDER = "action_output";
const SUFFIX = ".ndjson";
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/;
const LINE_FEED = 0x0a;
const READ_BYTES = 262_144;

const line: z.ZodType<OutputLine> = z.object({
  ts: z.number(),
  node_id: z.string(),
  stream: z.enum(["stdout", "stderr"]),
  data: z.string(),
});

/** The files of all actions. */
export class OutputStore {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Makes the folder when it is missing. */
  static async open(dataFolder: string): Promise<OutputStore> {
    const folder = join(dataFolder, FOLDER);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new OutputStore(folder);
  }

  /** A new file for an action, to append lines to. */
  create(id: string): Promise<FileHandle> {
    return open(this.#path(id), "ax", 0o600);
  }

  /**
   * Entries behind a number, of one node or of all. An action without a file has none. A number that is the end of no line means the
   * line after it.
   */
  async read(
    id: string,
    afterSeq: number,
    wanted: { readonly nodeId?: string | undefined; readonly limit?: number | undefined } = {},
  ): Promise<OutputPage> {
    const limit = Math.min(
      Math.max(1, wanted.limit ?? ACTION_OUTPUT_PAGE_ENTRIES),
      ACTION_OUTPUT_PAGE_ENTRIES,
    );
    const file = await open(this.#path(id), "r").catch(missing);
    if (file === undefined) return { entries: [], nextSeq: afterSeq, isEnd: true };
    try {
      const { size } = await file.stat();
      const entries: OutputEntry[] = [];
      let [nextSeq, bytes, isEnd] = [Math.min(afterSeq, size), 0, true];
      for await (const { text, end } of lines(file, nextSeq, size)) {
        if (
          entries.length >= limit ||
          (entries.length > 0 && bytes + text.length > ACTION_OUTPUT_PAGE_BYTES)
        ) {
          isEnd = false;
          break;
        }
        const parsed = line.safeParse(json(text));
        if (parsed.success && (wanted.nodeId === undefined || parsed.data.node_id === wanted.nodeId)) {
          entries.push({ seq: end, after_seq: nextSeq, ...parsed.data });
          bytes += text.length;
        }
        nextSeq = end;
      }
      return { entries, nextSeq, isEnd };
    } finally {
      await file.close();
    }
  }

  /** Removes the files of actions that the history no longer has, and the oldest beyond the newest 20 when they take too much room. */
  async prune(newestFirst: readonly string[]): Promise<void> {
    const kept = new Set(newestFirst);
    for (const name of await readdir(this.#folder)) {
      if (!kept.has(name.replace(SUFFIX, ""))) await rm(join(this.#folder, name), { force: true });
    }
    let bytes = 0;
    for (const id of newestFirst.slice(ACTION_RECORDS_WITH_OUTPUT)) {
      const found = await stat(this.#path(id)).catch(missing);
      bytes += found?.size ?? 0;
      if (found !== undefined && bytes > ACTION_OUTPUT_OLD_BYTES) await rm(this.#path(id), { force: true });
    }
  }

  #path(id: string): string {
    if (!ID.test(id)) throw new TypeError("not the id of an action");
    return join(this.#folder, `${id}${SUFFIX}`);
  }
}

/** Whole lines from a place on, with the place where each ends. */
async function* lines(
  file: FileHandle,
  from: number,
  size: number,
): AsyncGenerator<{ readonly text: string; readonly end: number }> {
  // A place within a line belongs to that line: begin behind it.
  let at = Math.max(0, from - 1);
  let isAligned = from === 0;
  let rest: Buffer = Buffer.alloc(0);
  let readAt = at;
  while (readAt < size) {
    const chunk = Buffer.alloc(Math.min(READ_BYTES, size - readAt));
    const { bytesRead } = await file.read(chunk, 0, chunk.length, readAt);
    if (bytesRead === 0) return;
    readAt += bytesRead;
    rest = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
    let begin = 0;
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED, begin)) {
      at += end + 1 - begin;
      if (isAligned) yield { text: rest.toString("utf8", begin, end), end: at };
      isAligned = true;
      begin = end + 1;
    }
    rest = rest.subarray(begin);
  }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function missing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}
