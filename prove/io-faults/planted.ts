// Planted bugs in the handling of errors, which failing calls must show.
import type { PlantedBug } from "#prove/rig.ts";

/** Each mistakes a failure for something else. */
export const ioFaultBugs: readonly PlantedBug[] = [
  {
    name: "flush-error-swallowed",
    is: "a chunk file whose flush fails is taken for flushed",
    rigs: ["io-faults"],
    edits: [
      {
        file: "src/storage/chunks/chunk-store.ts",
        from: "      await this.#flushes.run(party, () => flushData(descriptor));",
        to: "      await this.#flushes.run(party, () => flushData(descriptor)).catch(() => undefined);",
      },
    ],
    narrow: "upload,fdatasync",
    goal: 20,
  },
  {
    name: "flush-retried",
    is: "a flush that fails is tried once more",
    rigs: ["io-faults"],
    edits: [
      {
        file: "src/storage/chunks/chunk-store.ts",
        from: "      await this.#flushes.run(party, () => flushData(descriptor));",
        to: "      await this.#flushes.run(party, () => flushData(descriptor).catch(() => flushData(descriptor)));",
      },
    ],
    narrow: "upload,fdatasync",
    goal: 20,
  },
  {
    name: "folder-flush-error-swallowed",
    is: "a directory of chunk files whose flush fails stops the upload and nothing else",
    rigs: ["io-faults"],
    edits: [
      {
        file: "src/storage/chunks/chunk-store.ts",
        from: "      this.#failed(`flushing a directory of chunk files failed: ${String(error)}`);\n      throw error;",
        to: "      throw error;",
      },
    ],
    narrow: "upload,fsync",
    goal: 60,
  },
  {
    name: "read-error-ends-the-process",
    is: "nobody catches that the database cannot be read when chunk files are collected",
    rigs: ["io-faults"],
    edits: [
      {
        file: "src/storage/local/garbage-collector.ts",
        from: '      .catch((error: unknown) => this.#deps.logger.warn("storage.garbage_kept", { error: errorText(error) }))\n',
        to: "",
      },
    ],
    narrow: "remove-file,pread64",
    goal: 60,
  },
  {
    name: "start-closes-after-failed-flush",
    is: "a start whose flush fails closes the database, which brings in the log and flushes it again",
    rigs: ["io-faults"],
    edits: [
      {
        file: "src/storage/metadata/data-directory.ts",
        from: "    if (!isBrokenDatabase(error)) closeWriter(db);",
        to: "    if (isBrokenDatabase(error) || db.isOpen) closeWriter(db);",
      },
      {
        file: "src/storage/metadata/schema.ts",
        from: "    if (!isBrokenDatabase(error)) db.close();",
        to: "    if (isBrokenDatabase(error) || db.isOpen) db.close();",
      },
    ],
    narrow: "upload,fsync",
    goal: 60,
  },
];
