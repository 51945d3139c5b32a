// Lines of the process that opens crash states.

/** A line of it. */
export type ExplorerLine =
  | {
      /** States that were opened, none of them twice with the same expectation. */
      readonly states: number;
      /** Workloads of these states. */
      readonly workloads: number;
      readonly acknowledged: number;
      /** Images of the disk that differ in some byte, of all so far. */
      readonly distinct: number;
      /** Recovered folders that were checked; the others are the same to the byte. */
      readonly looked: number;
      /** States that lack only one file's or folder's unflushed changes. */
      readonly late: number;
    }
  | { readonly violation: string };
