// The messages between the console and the thread that reads and writes series files.
import type { SeriesForm, SeriesHead, SeriesRows } from "./series-format.ts";

/** To the thread; each request has one answer with its number. */
export type SeriesRequest =
  | {
      readonly kind: "load";
      readonly request: number;
      readonly path: string;
      readonly form: SeriesForm;
      readonly nowMs: number;
    }
  | {
      readonly kind: "begin";
      readonly request: number;
      /** Identifies the write in the requests that follow. */
      readonly write: number;
      readonly path: string;
      readonly form: SeriesForm;
      readonly head: SeriesHead;
      readonly mode: "whole" | "journal";
    }
  | {
      readonly kind: "rows";
      readonly request: number;
      readonly write: number;
      readonly series: readonly SeriesRows[];
    }
  | { readonly kind: "end"; readonly request: number; readonly write: number };

/** The result of a load. */
export interface SeriesLoaded {
  /** Of the whole file; 0 without one. */
  readonly generation: number;
  /** Damaged files and what was wrong with them. */
  readonly damaged: readonly string[];
}

/** From the thread. Rows of a load come before its answer. */
export type SeriesAnswer =
  | { readonly kind: "loaded_rows"; readonly request: number; readonly series: readonly SeriesRows[] }
  /** The rows so far are of a damaged file. */
  | { readonly kind: "loaded_nothing"; readonly request: number }
  | { readonly kind: "loaded"; readonly request: number; readonly loaded: SeriesLoaded }
  /** The file was written by a newer version. */
  | { readonly kind: "newer"; readonly request: number; readonly schema: number }
  | { readonly kind: "done"; readonly request: number; readonly writtenBytes: number }
  | { readonly kind: "failed"; readonly request: number; readonly failure: string };
