// Writes series files: a whole file atomically, or lines appended to its journal and flushed.
import { type FileHandle, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { PassThrough } from "node:stream";
import { syncDirectory, writeFileAtomic } from "#os/atomic-file.ts";
import {
  journalHead,
  type SeriesForm,
  type SeriesHead,
  type SeriesRows,
  seriesText,
  WHOLE_END,
  wholeHead,
} from "./series-format.ts";
import { journalPath } from "./series-reader.ts";

/** A write in progress. */
export interface SeriesWrite {
  /** Writes more series; resolves when they are handed to the system. */
  add(series: readonly SeriesRows[]): Promise<void>;
  /** Resolves with the number of bytes once they are on stable storage. */
  end(): Promise<number>;
}

/** Begins a whole file. The old one and its journal stay until the end. */
export function writeWhole(path: string, form: SeriesForm, head: SeriesHead): SeriesWrite {
  const pieces = new PassThrough();
  const start = wholeHead(form, head);
  let bytes = Buffer.byteLength(start);
  let isFirst = true;
  const written = writeFileAtomic(path, pieces);
  // `add` and `end` report the error.
  written.catch(() => pieces.destroy());
  pieces.on("error", () => undefined);
  pieces.write(start);
  const push = async (text: string): Promise<void> => {
    bytes += Buffer.byteLength(text);
    const taken = new Promise<void>((resolve) => pieces.write(text, () => resolve()));
    await Promise.race([taken, written]);
  };
  return {
    async add(series) {
      if (series.length === 0) return;
      const text = series.map((rows) => seriesText(form, rows)).join(",\n");
      await push(isFirst ? text : `,\n${text}`);
      isFirst = false;
    },
    async end() {
      await push(isFirst ? WHOLE_END : `\n${WHOLE_END}`);
      pieces.end();
      await written;
      // The new whole file has all rows of the journal, whose number is outdated.
      await rm(journalPath(path), { force: true });
      return bytes;
    },
  };
}

/** Begins to append to the journal, which is created if missing. */
export async function appendJournal(path: string, form: SeriesForm, head: SeriesHead): Promise<SeriesWrite> {
  const journal = journalPath(path);
  const handle = await open(journal, "a", 0o600);
  let bytes = 0;
  const write = async (text: string): Promise<void> => {
    try {
      await handle.writeFile(text);
    } catch (error) {
      await handle.close();
      throw error;
    }
    bytes += Buffer.byteLength(text);
  };
  const isNew = await isEmpty(handle);
  if (isNew) await write(journalHead(form, head));
  return {
    add: (series) => write(series.map((rows) => `${seriesText(form, rows)}\n`).join("")),
    async end() {
      try {
        await handle.datasync();
      } finally {
        await handle.close();
      }
      if (isNew) await syncDirectory(dirname(journal));
      return bytes;
    },
  };
}

async function isEmpty(handle: FileHandle): Promise<boolean> {
  return (await handle.stat()).size === 0;
}
