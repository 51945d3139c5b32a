// Planted bugs that let one user take what all share.
import type { PlantedBug } from "#prove/rig.ts";

/** What the rig must find. */
export const fairnessBugs: readonly PlantedBug[] = [
  {
    name: "sorted-at-once",
    is: "directories of any size are sorted on the main thread",
    rigs: ["fairness"],
    edits: [
      {
        file: "src/fileserver/operations/namespace-operations.ts",
        from: "export const LIST_SORT_AT_ONCE = 1_000;",
        to: "export const LIST_SORT_AT_ONCE = 1_000_000;",
      },
    ],
    narrow: "sorted listings",
    goal: 2,
  },
  {
    name: "writes-wait-in-one-line",
    is: "one user's writes may take all places of those that wait",
    rigs: ["fairness"],
    edits: [
      {
        file: "src/storage/local/range-lines.ts",
        from: "export const RANGE_WRITES_WAITING = 16_384;",
        to: "export const RANGE_WRITES_WAITING = 256;",
      },
      {
        file: "src/storage/local/range-lines.ts",
        from: "export const RANGE_WRITES_WAITING_PER_USER = 1_024;",
        to: "export const RANGE_WRITES_WAITING_PER_USER = 16_384;",
      },
    ],
    narrow: "ranged writes to one file",
    goal: 2,
  },
  {
    name: "sockets-read-to-their-end",
    is: "a connection is read for as long as it brings something, whoever else is there",
    rigs: ["fairness"],
    edits: [
      {
        file: "src/wire/grpc/read-scheduler.ts",
        from: "if (others < 2) return;",
        to: "if (others > 0) return;",
      },
    ],
    narrow: "uploads",
    goal: 2,
  },
];
