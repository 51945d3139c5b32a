// Planted bugs in the order of writes, flushes and commits, which only a worst case shows.
import type { PlantedBug } from "#prove/rig.ts";

/** What the rig must find. */
export const crashStatesBugs: readonly PlantedBug[] = [
  {
    name: "chunk-folder-not-flushed",
    is: "the folder of a chunk's file is not flushed: no fsync of a folder before an upload is acknowledged",
    rigs: ["crash-states"],
    edits: [
      {
        file: "src/storage/chunks/chunk-store.ts",
        from: 'await this.#flushes.run("", () => flushAll(descriptor));',
        to: "void flushAll;",
      },
    ],
  },
  {
    name: "commit-before-chunk-flush",
    is: "an upload is committed while its chunk is still being flushed",
    rigs: ["crash-states"],
    // Only a flush that is held back is certain to be overtaken: this many states have about twenty of
    // uploads.
    goal: 2_000,
    edits: [
      {
        file: "src/storage/local/upload-sink.ts",
        from: "      await Promise.all(this.#finished.map(({ durable }) => durable));\n      if (this.#finished.length > 0) {",
        to: "      if (this.#finished.length > 0) {",
      },
    ],
  },
  {
    name: "write-folder-not-flushed",
    is: "the folder of a rewritten chunk is not flushed before a ranged write is acknowledged",
    rigs: ["crash-states"],
    edits: [
      {
        file: "src/storage/local/range-writer.ts",
        from: "outlet.secure(writers), ",
        to: "",
      },
    ],
  },
  {
    name: "rename-before-flush",
    is: "a new file is renamed into its place before its bytes are flushed",
    rigs: ["crash-states"],
    edits: [
      {
        file: "src/os/atomic-file.ts",
        from: "    else for await (const piece of content) await handle.writeFile(piece);\n    await flush(handle, path);\n",
        to: "    else for await (const piece of content) await handle.writeFile(piece);\n",
      },
    ],
  },
  {
    name: "garbage-row-before-unlink-flush",
    is: "the row of a chunk goes before the removal of its file is on stable storage",
    rigs: ["crash-states"],
    edits: [
      {
        file: "src/storage/local/garbage-collector.ts",
        from: "      await store.flushDirectoriesOf(garbage.map(({ name }) => name));\n",
        to: "",
      },
    ],
  },
  {
    name: "levels-stay-when-entries-go",
    is: "a directory counts the levels of what was taken out of it",
    rigs: ["crash-states"],
    edits: [
      {
        file: "src/storage/writer/namespace-commands.ts",
        from: "    this.#heights.went(chain, entryHeight);\n",
        to: "",
      },
    ],
  },
];
