// Orders to the recorded process, and its lines.
import type { Workload } from "./workloads.ts";

/** One order after the other. */
export interface RecorderOrder {
  readonly order: "prepare" | "set up" | "work";
  readonly directory: string;
  /** Number of prepared folders. */
  readonly folders: number;
  /** One for each folder. */
  readonly workloads: readonly Workload[];
}

/** A line of the process. Folders are in the form of linesOf. */
export type RecorderLine =
  | { readonly event: "workload"; readonly index: number }
  | { readonly event: "begin"; readonly folder: string; readonly lines: string }
  /** The operation begun in the folder is acknowledged. */
  | { readonly event: "done"; readonly folder: string }
  | { readonly event: "end" }
  | { readonly event: "failed"; readonly text: string };
