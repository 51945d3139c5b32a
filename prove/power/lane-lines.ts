// Lines of the process that cuts the power of one disk.

/** A line of it. */
export type LaneLine =
  /** Cuts survived, some of them made while the store was being opened. */
  | { readonly cuts: number; readonly inRecovery: number }
  /** Changes acknowledged before the last cut. */
  | { readonly acknowledged: number }
  | { readonly violation: string };
