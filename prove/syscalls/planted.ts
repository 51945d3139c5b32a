// Planted bugs in the order of writes, which kills at exact calls must show.
import type { PlantedBug } from "#prove/rig.ts";

/** Each has a moment in which a kill leaves half of a change, or loses an acknowledged one. */
export const syscallBugs: readonly PlantedBug[] = [
  {
    name: "told-before-commit",
    is: "a change is acknowledged when its rows are written, right before they are committed",
    rigs: ["syscalls"],
    edits: [
      {
        file: "src/storage/writer/writer.ts",
        from: "    this.#commit.run();\n    this.#ledger.committed();\n    return replies;",
        to: "    this.early?.(replies);\n    this.#commit.run();\n    this.#ledger.committed();\n    return [];",
      },
      {
        file: "src/storage/writer/writer.ts",
        from: "  /** Why nothing is written any more. */",
        to: "  early: ((replies: Reply[]) => void) | undefined;\n\n  /** Why nothing is written any more. */",
      },
      {
        file: "src/storage/writer/write-worker.ts",
        from: "const writer = new Writer(data);",
        to: "const writer = new Writer(data);\nwriter.early = (replies) => answer(replies);",
      },
    ],
    narrow: "mkdir",
    goal: 40,
  },
  {
    name: "sizes-in-another-transaction",
    is: "sizes of folders and counters are written in a transaction of their own behind the change",
    rigs: ["syscalls"],
    edits: [
      {
        file: "src/storage/writer/writer.ts",
        from: "    this.#ledger.flush();\n    this.#commit.run();\n    this.#ledger.committed();\n    return replies;",
        to: "    this.#commit.run();\n    this.#begin.run();\n    this.#ledger.flush();\n    this.#commit.run();\n    this.#ledger.committed();\n    return replies;",
      },
    ],
    narrow: "create",
    goal: 30,
  },
  {
    name: "rename-in-two-transactions",
    is: "a rename over a file removes that file first, and moves then",
    rigs: ["syscalls"],
    edits: [
      {
        file: "src/storage/local/local-storage.ts",
        from: "    const { inodeId, parentId, name, targetAt, onConflict, ifMatch, targetIfMatch } = change;",
        to: '    const { inodeId, parentId, name, targetAt, onConflict, ifMatch, targetIfMatch } = change;\n    if (onConflict === "replace") {\n      const { entries } = this.list(parentId, { limit: 1_000, pageToken: "", sort: "name" });\n      const old = entries.find((entry) => entry.name === name && entry.id !== inodeId);\n      if (old !== undefined) await this.remove({ ...change, at: undefined, inodeId: old.id, recursive: true });\n    }',
      },
    ],
    narrow: "rename-over",
    goal: 40,
  },
  {
    name: "row-dropped-before-file",
    is: "a chunk's row goes before its file is unlinked",
    rigs: ["syscalls"],
    edits: [
      {
        file: "src/storage/local/garbage-collector.ts",
        from: "    const tried = await Promise.allSettled(",
        to: '    await queue.submit({ op: "dropGarbage", chunkIds: batch.map(({ id }) => id) });\n    const tried = await Promise.allSettled(',
      },
      {
        file: "src/storage/local/garbage-collector.ts",
        from: '      await store.flushDirectoriesOf(garbage.map(({ name }) => name));\n      await queue.submit({ op: "dropGarbage", chunkIds: garbage.map(({ id }) => id) });',
        to: "      await store.flushDirectoriesOf(garbage.map(({ name }) => name));",
      },
    ],
    narrow: "remove-file,copied",
    goal: 300,
  },
  {
    name: "file-unlinked-before-row",
    is: "the chunk files of what is removed are unlinked before the rows that name them go",
    rigs: ["syscalls"],
    edits: [
      {
        file: "src/storage/local/local-storage.ts",
        from: '    return this.#queue.submit({ op: "remove", ...this.#fields(change), inodeId, recursive });',
        to: '    const content = this.#open().file(inodeId);\n    const names = [...this.#open().chunkList(content.contentId as number).chunkIds].map((id) => this.#open().chunk(id)?.name ?? "");\n    return Promise.all(names.map((name) => this.#store.unlink(name))).then(() =>\n      this.#queue.submit({ op: "remove", ...this.#fields(change), inodeId, recursive }),\n    );',
      },
    ],
    narrow: "remove-file",
    goal: 60,
  },
  {
    name: "start-sweeps-nothing",
    is: "chunk files that a killed upload has left are not looked for",
    rigs: ["syscalls"],
    edits: [
      {
        file: "src/storage/metadata/start-recovery.ts",
        from: "for (const { name } of open) sweptChunkFiles += sweepDirectory(db, join(directory, CHUNKS_DIRECTORY, name));",
        to: "for (const { name } of open.slice(1)) sweptChunkFiles += sweepDirectory(db, join(directory, CHUNKS_DIRECTORY, name));",
      },
    ],
    narrow: "upload",
    goal: 40,
  },
  {
    name: "start-forgets-copies",
    is: "copies that a kill has cut off are not taken away",
    rigs: ["syscalls"],
    edits: [
      {
        file: "src/storage/metadata/start-recovery.ts",
        from: 'db.exec("INSERT INTO purging (inode_id) SELECT inode_id FROM copying");\n  db.exec("DELETE FROM copying");',
        to: 'db.exec("DELETE FROM copying");',
      },
    ],
    narrow: "copy-large-folder",
    goal: 120,
  },
  {
    name: "quotas-written-in-place",
    is: "the file of quotas is overwritten instead of replaced",
    rigs: ["syscalls"],
    edits: [
      {
        file: "src/quota/quota-store.ts",
        from: "deps.replaceFile ?? ((file, content) => writeFileAtomic(file, content, { keepPrevious: true }));",
        to: "deps.replaceFile ?? ((file, content) => writeFile(file, content));",
      },
      {
        file: "src/quota/quota-store.ts",
        from: 'import { rename } from "node:fs/promises";',
        to: 'import { rename, writeFile } from "node:fs/promises";',
      },
    ],
    narrow: "set-quota",
    goal: 20,
  },
];
