// What the thread of a pass over everything stored tells the main thread, and what is kept of every such pass.

/** What goes through everything stored again and again; also the key of the table `meta` below which its record is kept. */
export type PassName = "scrub" | "recount";

/** What is kept in the database: the pass under way, and when the last was ended; more is the job's own. */
export interface PassRecord<Pass> {
  readonly pass: Pass | undefined;
  readonly lastEndedAtMs: number | undefined;
}

/** From a pass's thread. */
export type PassMessage<Pass, Found> =
  | { readonly kind: "progress"; readonly pass: Pass }
  | { readonly kind: "found"; readonly found: Found }
  | { readonly kind: "database"; readonly problem: string }
  | { readonly kind: "stopped"; readonly pass: Pass }
  | { readonly kind: "ended"; readonly pass: Pass };
