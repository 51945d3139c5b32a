// Planted bugs that kills of a shared engine must show.
import type { PlantedBug } from "#prove/rig.ts";

/** Each leaves out what keeps a process that was cut off, or an answer that was lost, from doing harm. */
export const engineKillBugs: readonly PlantedBug[] = [
  {
    name: "commits-without-guard",
    is: "the database takes a group from any process, whatever others have committed since",
    rigs: ["engine-kills"],
    narrow: "cut",
    edits: [
      {
        file: "src/storage/shared/commit-schema.ts",
        from: " AND h.epoch = p_epochs[at] AND h.last_batch = p_batches[at] - 1;",
        to: ";",
      },
    ],
  },
  {
    name: "lost-answer-taken-as-done",
    is: "a commit whose answer was lost counts as committed",
    rigs: ["engine-kills"],
    narrow: "database,hiccup,cut",
    edits: [
      {
        file: "src/storage/shared/commit-client.ts",
        from: "      if (failure === undefined) {",
        to: '      if (failure === undefined || !("code" in failure)) {',
      },
    ],
  },
  {
    name: "lease-ends-by-the-database-alone",
    is: "a process ends its lease when the database says so, and not when it hears nothing",
    rigs: ["engine-kills"],
    narrow: "cut",
    edits: [
      {
        file: "src/storage/shared/lease-holder.ts",
        from: "    return this.#leftMs() > this.#leaseMs * (SHARED_LEASE_MARGIN_MS / SHARED_LEASE_MS);",
        to: "    return !this.#isEnded;",
      },
      {
        file: "src/storage/shared/lease-holder.ts",
        from: "      if (this.isHeld) this.#watchEnd();\n      else this.end();",
        to: "      if (this.isHeld) this.#watchEnd();",
      },
      {
        file: "src/storage/shared/lease-holder.ts",
        from: "    if (isRenewed === false || !this.isHeld) return this.end();",
        to: "    if (isRenewed === false) return this.end();",
      },
    ],
  },
  {
    name: "purges-under-the-wrong-root",
    is: "removed content of several roots is purged under the epoch of the one whose turn it is",
    rigs: ["engine-kills"],
    narrow: "fileserver",
    edits: [
      {
        file: "src/storage/writer/content-commands.ts",
        from: "this.#nextPurgeOf.get(root, belowId)",
        to: "this.#nextPurge.get(belowId)",
      },
    ],
  },
];
