// Planted bugs that only a link shows that was cut and mended.
import type { PlantedBug } from "#prove/rig.ts";

/** The bugs that the partitions must find. */
export const partitionBugs: readonly PlantedBug[] = [
  {
    name: "heartbeat-ends-with-a-failure",
    is: "a node whose heartbeat failed sends no other",
    rigs: ["partitions"],
    edits: [
      {
        file: "src/fileserver/control/meta-link.ts",
        from: "    await this.#beating;\n    if (!this.#isRunning) return;",
        to: "    await this.#beating;\n    if (!this.#isRunning || this.#lastFailure !== undefined) return;",
      },
    ],
  },
  {
    name: "share-told-once",
    is: "a share of which the MetaServer could not be told is told no more",
    rigs: ["partitions"],
    edits: [
      {
        file: "src/fileserver/control/share-replicator.ts",
        from: "        this.#changed.add(owner);\n        this.lost();",
        to: "        this.lost();",
      },
    ],
  },
];
