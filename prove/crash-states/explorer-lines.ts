// What the process says that opens crash states.

/** A line of it. */
export type ExplorerLine =
  | {
      /** States that were opened, none of them twice with the same expectation. */
      readonly states: number;
      /** Workloads that they are of. */
      readonly workloads: number;
      readonly acknowledged: number;
      /** Images of the disk that differ in some byte, of all so far. */
      readonly distinct: number;
      /** Recovered folders that were looked through; the others are the same to the byte. */
      readonly looked: number;
      /** States in which everything is there but the unflushed changes of one file or folder. */
      readonly late: number;
    }
  | { readonly violation: string };
