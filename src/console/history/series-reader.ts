// Reads series files, whole file and journal; damaged ones are set aside and never fatal (A-10, D24).
import { type FileHandle, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errorText } from "#base/log.ts";
import { removeLeftovers } from "#os/atomic-file.ts";
import {
  isClosing,
  parseHead,
  parseSeries,
  SERIES_SCHEMA,
  type SeriesForm,
  type SeriesRows,
  schemaOf,
} from "./series-format.ts";
import type { SeriesLoaded } from "./series-messages.ts";

/** Largest series file that is read; four times what the limits of the series make. */
const SERIES_FILE_MAX_BYTES: number = 512 * 1_048_576;
/** Longest line of such a file: one series, with about ten times its largest size. */
const SERIES_LINE_MAX_BYTES = 2_097_152;
/** Damaged files of one name that are kept; the oldest is removed first. */
const CORRUPT_FILES_KEPT = 3;

const NEWLINE = 0x0a;
const SCHEMA_START_BYTES = 256;
const READ_BYTES = 262_144;

/** Thrown for a file that a newer version wrote. */
export class NewerSchema extends Error {
  readonly schema: number;

  constructor(schema: number) {
    super(`schema ${schema}`);
    this.schema = schema;
  }
}

/** Path of the journal that belongs to a whole file. */
export function journalPath(path: string): string {
  return path.replace(/\.json$/, ".journal");
}

/** Receiver of the rows that are read. */
export interface SeriesTaker {
  take(rows: SeriesRows): void;
  /** Drops the rows so far, because their file is damaged. */
  reset(): void;
}

/**
 * Reads both files and returns their series in order, the journal's last. A torn end of the journal is the
 * trace of a crash and no damage. Throws NewerSchema before any change.
 */
export async function loadSeries(
  path: string,
  form: SeriesForm,
  nowMs: number,
  taker: SeriesTaker,
): Promise<SeriesLoaded> {
  await removeLeftovers(path).catch(() => undefined);
  const journal = journalPath(path);
  for (const file of [path, journal]) await refuseNewer(file);
  const damaged: string[] = [];
  const setAside = async (file: string, error: unknown): Promise<void> => {
    damaged.push(`${basename(file)}: ${errorText(error)}`);
    await moveAside(file, nowMs);
  };
  let generation = 0;
  try {
    const isThere = await withLines(path, async (lines) => {
      generation = await readWhole(lines, form, taker);
    });
    // A journal is useless without the whole file that it continues.
    if (!isThere) return { generation, damaged };
  } catch (error) {
    taker.reset();
    await setAside(path, error);
    await moveAside(journal, nowMs);
    return { generation: 0, damaged };
  }
  try {
    await withLines(journal, (lines) => readJournal(lines, form, generation, taker));
  } catch (error) {
    await setAside(journal, error);
  }
  return { generation, damaged };
}

/** The lines of a file, and last an incomplete line, if any. */
type Lines = AsyncGenerator<{ readonly text: string; readonly isWhole: boolean }, void>;

async function readWhole(lines: Lines, form: SeriesForm, taker: SeriesTaker): Promise<number> {
  const first = await lines.next();
  if (first.done === true) throw new Error("the file is empty");
  const { generation } = parseHead(form, first.value.text, "whole");
  for await (const { text, isWhole } of lines) {
    if (!isWhole) break;
    if (isClosing(text)) {
      if ((await lines.next()).done !== true) throw new Error("something stands behind the end");
      return generation;
    }
    taker.take(parseSeries(form, text.endsWith(",") ? text.slice(0, -1) : text));
  }
  throw new Error("the end is missing");
}

/** A journal of an older whole file has no new rows. */
async function readJournal(
  lines: Lines,
  form: SeriesForm,
  generation: number,
  taker: SeriesTaker,
): Promise<void> {
  const first = await lines.next();
  // Torn at its beginning: the journal is empty.
  if (first.done === true || !first.value.isWhole) return;
  if (parseHead(form, first.value.text, "journal").generation !== generation) return;
  let torn: Error | undefined;
  for await (const { text, isWhole } of lines) {
    // Only the last line may be torn.
    if (torn !== undefined) throw torn;
    if (!isWhole) return;
    try {
      taker.take(parseSeries(form, text));
    } catch (error) {
      torn = error as Error;
    }
  }
}

/** Reads a file line by line; false without a file. */
async function withLines(path: string, read: (lines: Lines) => Promise<void>): Promise<boolean> {
  let handle: FileHandle;
  try {
    handle = await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  try {
    const { size } = await handle.stat();
    if (size > SERIES_FILE_MAX_BYTES) throw new Error(`the file has ${size} bytes`);
    await read(linesOf(handle));
  } finally {
    await handle.close();
  }
  return true;
}

async function* linesOf(handle: FileHandle): Lines {
  const piece = Buffer.allocUnsafe(READ_BYTES);
  let rest: Buffer = Buffer.alloc(0);
  for (;;) {
    const { bytesRead } = await handle.read(piece, 0, READ_BYTES, null);
    if (bytesRead === 0) break;
    const bytes = Buffer.concat([rest, piece.subarray(0, bytesRead)]);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      yield { text: bytes.toString("utf8", start, end), isWhole: true };
      start = end + 1;
    }
    rest = bytes.subarray(start);
    if (rest.length > SERIES_LINE_MAX_BYTES) throw new Error("a line has no end");
  }
  if (rest.length > 0) yield { text: rest.toString("utf8"), isWhole: false };
}

async function refuseNewer(path: string): Promise<void> {
  const start = Buffer.alloc(SCHEMA_START_BYTES);
  try {
    const handle = await open(path, "r");
    try {
      await handle.read(start, 0, SCHEMA_START_BYTES, 0);
    } finally {
      await handle.close();
    }
  } catch {
    // An unreadable file is checked below, and set aside.
    return;
  }
  const schema = schemaOf(start.toString("latin1"));
  if (schema !== undefined && schema > SERIES_SCHEMA) throw new NewerSchema(schema);
}

/**
 * Renames a file to `.corrupt-<time>` and keeps the newest few. A file that cannot be renamed stays until the
 * next whole file replaces it.
 */
async function moveAside(path: string, nowMs: number): Promise<void> {
  try {
    await rename(path, `${path}.corrupt-${Math.floor(nowMs / 1_000)}`);
    const folder = dirname(path);
    const earlier = (await readdir(folder)).filter((name) => name.startsWith(`${basename(path)}.corrupt-`));
    for (const name of earlier.sort().slice(0, -CORRUPT_FILES_KEPT)) {
      await rm(join(folder, name), { force: true, recursive: true });
    }
  } catch {
    // The file is missing, or the folder is not writable, in which case saving fails too and reports it.
  }
}
