// Planted bugs that moves of roots under load must show.
import type { PlantedBug } from "#prove/rig.ts";

/** Each breaks one step that keeps a move whole. */
export const moveBugs: readonly PlantedBug[] = [
  {
    name: "move-without-freeze",
    is: "a root takes changes while its move switches",
    rigs: ["moves"],
    edits: [
      {
        file: "src/storage/writer/move-commands.ts",
        from: "    this.#ledger.frozen.set(number, true);",
        to: "",
      },
      {
        file: "src/fileserver/moves/move-source.ts",
        from: "    this.#frozen.set(owner, moveId);\n    this.#attempts",
        to: "    this.#attempts",
      },
    ],
  },
  {
    name: "move-without-overwrites",
    is: "rows that change while a root is copied do not come again",
    rigs: ["moves"],
    edits: [
      {
        file: "src/storage/metadata/move-journal.ts",
        from: '  ["UPDATE", ["OLD", "NEW"]],\n',
        to: "",
      },
    ],
  },
  {
    name: "move-without-comparison",
    is: "a move switches after the freeze without the rest, and without a look at the sums",
    rigs: ["moves"],
    edits: [
      {
        file: "src/fileserver/moves/move-target.ts",
        from: "    while (totals === undefined) {",
        to: "    while (totals === undefined && false) {",
      },
      {
        file: "src/fileserver/moves/move-target.ts",
        from: "    if (here.rows !== totals.rows || here.checksum !== totals.checksum) {",
        to: "    if (totals !== undefined) {",
      },
    ],
  },
  {
    name: "source-serves-after-the-switch",
    is: "the former node of a root opens it again when its move has switched",
    rigs: ["moves"],
    edits: [
      {
        file: "src/fileserver/moves/move-source.ts",
        from: "      await moves.depart(moveId, otherAddress, target);",
        to: "      await moves.thaw(moveId);",
      },
      {
        file: "src/fileserver/moves/move-source.ts",
        from: "    this.#departed.set(owner, otherAddress);\n    if (isNews) this.#deps.onDeparted(owner);",
        to: "",
      },
    ],
  },
];
