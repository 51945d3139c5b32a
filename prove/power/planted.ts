// Planted bugs that a power cut shows.
import type { PlantedBug } from "#prove/rig.ts";

/** What the rig must find. */
export const powerBugs: readonly PlantedBug[] = [
  {
    name: "log-not-flushed",
    is: "synchronous=NORMAL: a commit is acknowledged before the write-ahead log is flushed",
    rigs: ["power", "crash-states"],
    edits: [
      {
        file: "src/storage/metadata/schema.ts",
        from: "PRAGMA synchronous = FULL;",
        to: "PRAGMA synchronous = NORMAL;",
      },
    ],
  },
  {
    name: "chunk-not-flushed",
    is: "a chunk's file is closed without a flush",
    rigs: ["power", "crash-states"],
    edits: [
      {
        file: "src/storage/chunks/chunk-store.ts",
        from: "await this.#flushes.run(party, () => flushData(descriptor));",
        to: "void flushData;",
      },
    ],
  },
];
