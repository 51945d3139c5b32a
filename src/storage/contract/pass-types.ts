// Messages from the thread of a background pass to the main thread, and the record of every such pass.

/** The background passes; also the key of a pass's record in the table `meta`. */
export type PassName = "scrub" | "recount";

/** Record in the database: the pass under way, and the end of the last one; the job adds its own fields. */
export interface PassRecord<Pass> {
  readonly pass: Pass | undefined;
  readonly lastEndedAtMs: number | undefined;
}

/** Message from a pass's thread. */
export type PassMessage<Pass, Found> =
  | { readonly kind: "progress"; readonly pass: Pass }
  | { readonly kind: "found"; readonly found: Found }
  | { readonly kind: "database"; readonly problem: string }
  | { readonly kind: "stopped"; readonly pass: Pass }
  | { readonly kind: "ended"; readonly pass: Pass };
