// The whole output of actions, one file each; the offset of an entry's end is its number (D7, D8).
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { createGunzip, createGzip } from "node:zlib";
import { z } from "zod";
import { ACTION_OUTPUT_PAGE_ENTRIES } from "#base/limits.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import type { OutputEntry, OutputLine } from "./action-output.ts";

/** Output of all actions but the newest 20 (decision D7); the oldest is removed first. */
const ACTION_OUTPUT_OLD_BYTES = 50_000_000;
/** Bytes of one page of an action's output; the first entry may be larger. */
const ACTION_OUTPUT_PAGE_BYTES = 1_048_576;
/** Newest records of the history that keep output in themselves (decision D7). */
export const ACTION_RECORDS_WITH_OUTPUT = 20;

/** One page of output. */
export interface OutputPage {
  readonly entries: readonly OutputEntry[];
  /** Number of the page's last entry; the next page begins behind it. */
  readonly nextSeq: number;
  /** True when nothing follows this page now. */
  readonly isEnd: boolean;
}

/** The actions that the history has, by id. */
export interface KnownActions {
  readonly endedNewestFirst: readonly string[];
  readonly unfinished: readonly string[];
  /** True where a damaged history may have had others. */
  readonly isIncomplete: boolean;
}

/** Name of the folder in the console's data folder. */
const FOLDER = "action_output";
const SUFFIX = ".ndjson";
/** Suffix of older actions' files; entries are numbered by the uncompressed text. */
const GZIP_SUFFIX = ".ndjson.gz";
const NAME = /^([0-9A-HJKMNP-TV-Z]{26})\.ndjson(?:\.gz)?$/;
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
  #lastPrune: Promise<void> = Promise.resolve();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Makes the folder when it is missing. */
  static async open(dataFolder: string): Promise<OutputStore> {
    const folder = join(dataFolder, FOLDER);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new OutputStore(folder);
  }

  /** Creates an action's file, for appending lines. */
  create(id: string): Promise<FileHandle> {
    return open(this.#path(id), "ax", 0o600);
  }

  /**
   * Entries behind a number, of one node or of all; none for an action without a file. A number within a line
   * means that line.
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
    await using source = await this.#open(id, afterSeq);
    if (source === undefined) return { entries: [], nextSeq: afterSeq, isEnd: true };
    const entries: OutputEntry[] = [];
    let [nextSeq, bytes, isEnd] = [source.from, 0, true];
    for await (const { text, end } of lines(source.chunks, source.from)) {
      if (entries.length >= limit || (entries.length > 0 && bytes + text.length > ACTION_OUTPUT_PAGE_BYTES)) {
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
  }

  /**
   * Removes files of actions that have left the history; those that a damaged one may have had count as the oldest
   * finished ones. Of finished ones beyond the newest 20, compresses the files and removes the oldest beyond the
   * budget. Rejects with the system's error; the next call does the rest.
   */
  prune(known: () => KnownActions): Promise<void> {
    const mine = this.#lastPrune.catch(() => undefined).then(() => this.#prune(known));
    this.#lastPrune = mine;
    return mine;
  }

  async #prune(known: () => KnownActions): Promise<void> {
    const names = await readdir(this.#folder);
    // Read after the folder: an action is known before it has a file.
    const { endedNewestFirst, unfinished, isIncomplete } = known();
    const kept = new Set([...endedNewestFirst, ...unfinished]);
    const lost = new Set<string>();
    for (const name of names) {
      const id = NAME.exec(name)?.[1];
      if (id !== undefined && kept.has(id)) continue;
      // No other writer is left: a name without an id is an interrupted compression.
      if (id !== undefined && isIncomplete) lost.add(id);
      else await rm(join(this.#folder, name), { force: true });
    }
    let bytes = 0;
    // Ids begin with their time.
    const lostNewestFirst = [...lost].sort().toReversed();
    for (const id of [...endedNewestFirst, ...lostNewestFirst].slice(ACTION_RECORDS_WITH_OUTPUT)) {
      const size = await this.#compressed(id);
      bytes += size;
      if (size > 0 && bytes > ACTION_OUTPUT_OLD_BYTES) await rm(this.#path(id, GZIP_SUFFIX), { force: true });
    }
  }

  /** Compresses an action's file if needed and returns its size; 0 without a file. */
  async #compressed(id: string): Promise<number> {
    const [plain, small] = [this.#path(id), this.#path(id, GZIP_SUFFIX)];
    if ((await stat(plain).catch(missing)) !== undefined) {
      const gzip = createGzip();
      pipeline(createReadStream(plain), gzip, () => undefined);
      await writeFileAtomic(small, gzip);
      await rm(plain, { force: true });
    }
    return (await stat(small).catch(missing))?.size ?? 0;
  }

  /** An action's file from one byte before an offset; undefined without a file. */
  async #open(id: string, afterSeq: number): Promise<Source | undefined> {
    const file = await open(this.#path(id), "r").catch(missing);
    if (file !== undefined) {
      const { size } = await file.stat();
      const from = Math.min(afterSeq, size);
      return {
        from,
        chunks: bytesOf(file, Math.max(0, from - 1), size),
        [Symbol.asyncDispose]: () => file.close(),
      };
    }
    const small = await open(this.#path(id, GZIP_SUFFIX), "r").catch(missing);
    if (small === undefined) return undefined;
    const gunzip = createGunzip({ chunkSize: READ_BYTES });
    pipeline(small.createReadStream({ autoClose: false }), gunzip, () => undefined);
    return {
      from: afterSeq,
      chunks: inflated(gunzip, Math.max(0, afterSeq - 1)),
      async [Symbol.asyncDispose]() {
        gunzip.destroy();
        await small.close();
      },
    };
  }

  #path(id: string, suffix = SUFFIX): string {
    if (!ID.test(id)) throw new TypeError("not the id of an action");
    return join(this.#folder, `${id}${suffix}`);
  }
}

/** Bytes of an output from one before an offset. */
interface Source extends AsyncDisposable {
  readonly from: number;
  readonly chunks: AsyncIterable<Buffer>;
}

async function* bytesOf(file: FileHandle, from: number, size: number): AsyncGenerator<Buffer> {
  for (let at = from; at < size; ) {
    const chunk = Buffer.alloc(Math.min(READ_BYTES, size - at));
    const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

async function* inflated(chunks: AsyncIterable<Buffer>, from: number): AsyncGenerator<Buffer> {
  let at = 0;
  for await (const chunk of chunks) {
    const begin = Math.min(chunk.length, Math.max(0, from - at));
    at += chunk.length;
    if (begin < chunk.length) yield chunk.subarray(begin);
  }
}

/** Complete lines behind an offset, each with the offset of its end; the chunks begin one byte before it. */
async function* lines(
  chunks: AsyncIterable<Buffer>,
  from: number,
): AsyncGenerator<{ readonly text: string; readonly end: number }> {
  // An offset within a line means that line: begin behind it.
  let at = Math.max(0, from - 1);
  let isAligned = from === 0;
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk]);
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
