// Reads files of kept figures: the whole file, then its journal; what is damaged is set aside and never fatal (A-10, D24).
import { open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { CORRUPT_FILES_KEPT, SERIES_FILE_MAX_BYTES } from "#base/limits.ts";
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

const NEWLINE = 0x0a;
const SCHEMA_START_BYTES = 256;

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

/**
 * Reads both files and gives their series one after another, those of the journal later. A torn end of the journal is what a crash
 * leaves, no damage. Throws NewerSchema before anything was changed.
 */
export async function loadSeries(
  path: string,
  form: SeriesForm,
  nowMs: number,
  take: (rows: SeriesRows) => void,
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
    const content = await readBounded(path);
    // A journal alone says nothing without the whole that it continues.
    if (content === undefined) return { generation, damaged };
    generation = readWhole(content, form, take);
  } catch (error) {
    await setAside(path, error);
    await moveAside(journal, nowMs);
    return { generation: 0, damaged };
  }
  try {
    const content = await readBounded(journal);
    if (content !== undefined) readJournal(content, form, generation, take);
  } catch (error) {
    await setAside(journal, error);
  }
  return { generation, damaged };
}

/** Nothing is given before all of it is known to be sound. */
function readWhole(content: Buffer, form: SeriesForm, take: (rows: SeriesRows) => void): number {
  const lines = linesOf(content);
  const first = lines.next();
  if (first.done === true) throw new Error("the file is empty");
  const { generation } = parseHead(form, first.value, "whole");
  const series: SeriesRows[] = [];
  for (const line of lines) {
    if (isClosing(line)) {
      if (lines.next().done !== true) throw new Error("something stands behind the end");
      for (const rows of series) take(rows);
      return generation;
    }
    series.push(parseSeries(form, line.endsWith(",") ? line.slice(0, -1) : line));
  }
  throw new Error("the end is missing");
}

/** A journal of an older whole file says nothing new. */
function readJournal(
  content: Buffer,
  form: SeriesForm,
  generation: number,
  take: (rows: SeriesRows) => void,
): void {
  const lines = linesOf(content);
  const first = lines.next();
  // Torn while it was begun: nothing stands in it yet.
  if (first.done === true) return;
  if (parseHead(form, first.value, "journal").generation !== generation) return;
  let torn: Error | undefined;
  for (const line of lines) {
    // Only the last line may be torn.
    if (torn !== undefined) throw torn;
    try {
      take(parseSeries(form, line));
    } catch (error) {
      torn = error as Error;
    }
  }
}

/** The lines with an end; a rest without one was torn off. */
function* linesOf(content: Buffer): Generator<string, void> {
  let start = 0;
  for (let end = content.indexOf(NEWLINE); end >= 0; end = content.indexOf(NEWLINE, start)) {
    yield content.toString("utf8", start, end);
    start = end + 1;
  }
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
    // What cannot be read is looked at again below, and set aside.
    return;
  }
  const schema = schemaOf(start.toString("latin1"));
  if (schema !== undefined && schema > SERIES_SCHEMA) throw new NewerSchema(schema);
}

async function readBounded(path: string): Promise<Buffer | undefined> {
  try {
    const { size } = await stat(path);
    if (size > SERIES_FILE_MAX_BYTES) throw new Error(`the file has ${size} bytes`);
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Renames a file to `.corrupt-<time>`; few of them are kept. What cannot be renamed stays until the next whole file replaces it. */
async function moveAside(path: string, nowMs: number): Promise<void> {
  try {
    await rename(path, `${path}.corrupt-${Math.floor(nowMs / 1_000)}`);
    const folder = dirname(path);
    const earlier = (await readdir(folder)).filter((name) => name.startsWith(`${basename(path)}.corrupt-`));
    for (const name of earlier.sort().slice(0, -CORRUPT_FILES_KEPT)) {
      await rm(join(folder, name), { force: true, recursive: true });
    }
  } catch {
    // Not there, or a folder that cannot be written to: then saving fails too, and says so.
  }
}
