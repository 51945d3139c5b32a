// Planted bugs of files, folders, trash and shares.
import type { PlantedBug } from "#prove/rig.ts";

const CONTENT = "src/storage/writer/content-commands.ts";

/** What the model rig must find. */
export const modelBugs: readonly PlantedBug[] = [
  {
    name: "rename-leaves-shares-behind",
    is: "a move leaves the paths of shares where they were",
    rigs: ["model"],
    edits: [
      {
        file: "src/storage/metadata/share-rows.ts",
        from: "    const { changes } = this.#move.run(to, from, ...atOrBelow(root.owner, from));\n    if (changes !== 0) this.#changed(root, 0);\n",
        to: "",
      },
    ],
  },
  {
    name: "write-keeps-version",
    is: "a file keeps its version when its content changes",
    rigs: ["model"],
    edits: [
      {
        file: CONTENT,
        from: "version: old.version + 1, ctimeMs: nowMs",
        to: "version: old.version, ctimeMs: nowMs",
      },
    ],
  },
  {
    name: "restore-is-not-live",
    is: "what comes back from the trash is not counted as live",
    rigs: ["model"],
    edits: [
      {
        file: "src/storage/writer/trash-commands.ts",
        from: "    this.#ledger.addToUsage(root, { bytes, inodes, files });\n",
        to: "",
      },
    ],
  },
  {
    name: "sharee-overwrites-for-good",
    is: "what somebody other than the owner replaces is gone",
    rigs: ["model"],
    edits: [
      {
        file: CONTENT,
        from: "    if (change.by !== change.owner && old.size > 0) return this.#bin.keepContent(place, old, change);\n",
        to: "",
      },
    ],
  },
  {
    name: "engine-reads-behind-its-commits",
    is: "after a commit to the shared engine readers go on with the version before",
    rigs: ["model-over-engine"],
    edits: [
      {
        file: "src/storage/shared/shared-writer.ts",
        from: "    this.#ledger.committed();\n    this.#deps.changed?.();\n",
        to: "    this.#ledger.committed();\n",
      },
    ],
  },
  {
    name: "move-tells-other-shares",
    is: "a moved file tells the shares of what it replaced instead of its own",
    rigs: ["model"],
    edits: [
      {
        file: "src/fileserver/operations/namespace-operations.ts",
        from: "return await whenRowsAreHere(() => movedAttr(this.#deps.storage, target, change.inode));",
        to: "return entryAttr(target, change.inode);",
      },
    ],
  },
];
