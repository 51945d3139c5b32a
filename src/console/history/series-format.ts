// The text of series files: a head, then one line per series, written and read line by line.
import { rounded } from "./columns.ts";
import type { Rows } from "./slot-ring.ts";

/** Bytes of values handed to the writing thread at once: copied in about a millisecond. */
export const SERIES_BATCH_BYTES = 1_048_576;
/** Series handed over at once. */
export const SERIES_BATCH = 512;

/** The schema that this version writes; a newer one is refused rather than overwritten (D18). */
export const SERIES_SCHEMA = 1;

/** The properties that all series of a file share. */
export interface SeriesForm {
  /** Name of the list in the file. */
  readonly list: "nodes" | "series";
  readonly columns: readonly { readonly name: string; readonly decimals: number }[];
  /** Maximum of rows of one series. */
  readonly rowsMax: number;
}

/** Rows of one series. */
export interface SeriesRows extends Rows {
  readonly id: string;
}

/** The head of a file. */
export interface SeriesHead {
  /** Counts whole files; a journal belongs to the whole file with the same number. */
  readonly generation: number;
  readonly savedAtUnix: number;
}

/** Longest name of a series: a username with its prefix. */
const ID_MAX_LENGTH = 300;
const CLOSING = "]}";

/** First line of a whole file, with its line end. The whole file is one JSON document. */
export function wholeHead(form: SeriesForm, head: SeriesHead): string {
  return `${JSON.stringify(headFields(form, head)).slice(0, -1)},"${form.list}":[\n`;
}

/** Last line of a whole file. */
export const WHOLE_END = `${CLOSING}\n`;

/** First line of a journal, with its line end. */
export function journalHead(form: SeriesForm, head: SeriesHead): string {
  return `${JSON.stringify(headFields(form, head))}\n`;
}

/** One series as JSON without a line end. Null is unknown. */
export function seriesText(form: SeriesForm, { id, firstSlot, values }: SeriesRows): string {
  const length = values.length / form.columns.length;
  const columns = form.columns.map(({ decimals }, column) => {
    const cells: (number | null)[] = [];
    for (let index = 0; index < length; index++) {
      const value = values[column * length + index] ?? Number.NaN;
      cells.push(Number.isNaN(value) ? null : rounded(value, decimals));
    }
    return JSON.stringify(cells);
  });
  return `{"id":${JSON.stringify(id)},"first_slot":${firstSlot},"values":[${columns.join(",")}]}`;
}

/** Schema number of a file; undefined without one. */
export function schemaOf(start: string): number | undefined {
  const digits = /^\s*\{\s*"schema"\s*:\s*(\d{1,9})\b/.exec(start)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Reads the head of a whole file or of a journal. Throws an Error with the reason. */
export function parseHead(form: SeriesForm, line: string, kind: "whole" | "journal"): SeriesHead {
  const head = parseObject(kind === "whole" ? line + CLOSING : line);
  const expected = JSON.stringify(form.columns.map(({ name }) => name));
  if (head["schema"] !== SERIES_SCHEMA) throw new Error("the head names no schema");
  if (JSON.stringify(head["columns"]) !== expected) throw new Error("the head names other columns");
  if (kind === "whole" && !Array.isArray(head[form.list])) throw new Error(`the head has no ${form.list}`);
  const { generation, saved_at: savedAtUnix } = head;
  if (!isCount(generation) || !isCount(savedAtUnix)) throw new Error("the head's numbers are none");
  return { generation, savedAtUnix };
}

/** True for the last line of a whole file, without its line end. */
export function isClosing(line: string): boolean {
  return line === CLOSING;
}

/** Reads one series. Throws an Error with the reason. */
export function parseSeries(form: SeriesForm, line: string): SeriesRows {
  const { id, first_slot: firstSlot, values: columns } = parseObject(line);
  if (typeof id !== "string" || id.length === 0 || id.length > ID_MAX_LENGTH)
    throw new Error("a series has no name");
  if (!isCount(firstSlot)) throw new Error("a series begins nowhere");
  if (!Array.isArray(columns) || columns.length !== form.columns.length) {
    throw new Error("a series has other columns");
  }
  const length = lengthOf(columns[0]);
  if (length === undefined || length > form.rowsMax) throw new Error("a series is too long");
  const values = new Float32Array(columns.length * length);
  columns.forEach((cells: unknown, column) => {
    if (!Array.isArray(cells) || cells.length !== length) throw new Error("columns have different lengths");
    cells.forEach((cell: unknown, index) => {
      if (cell !== null && typeof cell !== "number") throw new Error("a figure is no number");
      values[column * length + index] = cell ?? Number.NaN;
    });
  });
  return { id, firstSlot, values };
}

function headFields(form: SeriesForm, head: SeriesHead): object {
  return {
    schema: SERIES_SCHEMA,
    generation: head.generation,
    saved_at: head.savedAtUnix,
    columns: form.columns.map(({ name }) => name),
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error("a line is no object");
  return value as Readonly<Record<string, unknown>>;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function lengthOf(cells: unknown): number | undefined {
  return Array.isArray(cells) ? cells.length : undefined;
}
