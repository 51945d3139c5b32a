// What the process that changes a store is told, and what it says.

/** What it is told, once. */
export interface LoadOrder {
  readonly directory: string;
  readonly seed: number;
}

/** A line that it says. Folders are told as the lines of linesOf. */
export type LoadLine =
  /** It has started and waits for its orders. */
  | { readonly event: "ready" }
  /** The check has been made that reads without recovering; the store is opened next. */
  | { readonly event: "checked" }
  /** What the store holds after its recovery. */
  | { readonly event: "found"; readonly folders: Readonly<Record<string, string>> }
  /** Something is not as it must be. */
  | { readonly event: "broken"; readonly text: string }
  | { readonly event: "begin"; readonly folder: string; readonly lines: string }
  /** What was begun in the folder is acknowledged. */
  | { readonly event: "done"; readonly folder: string }
  /** A change failed, as all do when the power has gone. */
  | { readonly event: "stopped"; readonly text: string };
