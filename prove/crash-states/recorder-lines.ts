// What the recorded process is told, and what it says.
import type { Workload } from "./workloads.ts";

/** What it is told, one order after the other. */
export interface RecorderOrder {
  readonly order: "prepare" | "set up" | "work";
  readonly directory: string;
  /** How many are prepared. */
  readonly folders: number;
  /** One for each folder. */
  readonly workloads: readonly Workload[];
}

/** A line that it says. Folders are told as the lines of linesOf. */
export type RecorderLine =
  | { readonly event: "workload"; readonly index: number }
  | { readonly event: "begin"; readonly folder: string; readonly lines: string }
  /** What was begun in the folder is acknowledged. */
  | { readonly event: "done"; readonly folder: string }
  | { readonly event: "end" }
  | { readonly event: "failed"; readonly text: string };
