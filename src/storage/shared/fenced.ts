// How the database refuses what a process wants to change under an epoch that is over, or by rows that are.

/** SQLSTATE of a commit by a holder that has lost one of its roots: nothing was written. */
export const FENCED = "GR001";

/** SQLSTATE of a commit by a holder whose rows name a person by an address that has changed: nothing was written. */
export const RENAMED = "GR002";

/** True for that refusal, after which the same commands pass on rows that are fetched again. */
export function isOfRenamed(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === RENAMED;
}
