// Orders to the process that changes a store, and its lines.

/** The one order. */
export interface LoadOrder {
  readonly directory: string;
  readonly seed: number;
}

/** A line of the process. Folders are in the form of linesOf. */
export type LoadLine =
  /** It has started and waits for its orders. */
  | { readonly event: "ready" }
  /** The check without recovery is done; the store is opened next. */
  | { readonly event: "checked" }
  /** The store's content after its recovery. */
  | { readonly event: "found"; readonly folders: Readonly<Record<string, string>> }
  /** Something is wrong. */
  | { readonly event: "broken"; readonly text: string }
  | { readonly event: "begin"; readonly folder: string; readonly lines: string }
  /** The change begun in the folder is acknowledged. */
  | { readonly event: "done"; readonly folder: string }
  /** A change failed, as all do when the power has gone. */
  | { readonly event: "stopped"; readonly text: string };
