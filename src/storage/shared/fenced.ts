// How the database refuses what a process wants to change under an epoch that is over.

/** SQLSTATE of a commit by a holder that has lost one of its roots: nothing was written. */
export const FENCED = "GR001";
