// What the process says that cuts the power of one disk.

/** A line of it. */
export type LaneLine =
  /** So many cuts were survived, some of them made while the store was being opened. */
  | { readonly cuts: number; readonly inRecovery: number }
  /** So many changes were acknowledged before the last cut. */
  | { readonly acknowledged: number }
  | { readonly violation: string };
