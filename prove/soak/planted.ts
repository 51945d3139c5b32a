// Planted bugs that only time and load show, for the soak to find.
import type { PlantedBug } from "#prove/rig.ts";

/** The bugs that the soak must find. */
export const soakBugs: readonly PlantedBug[] = [
  {
    name: "aborted-download-keeps-descriptor",
    is: "a chunk file's last reader does not close it when the reader before it was broken off",
    rigs: ["soak"],
    goal: 20,
    edits: [
      {
        file: "src/storage/chunks/open-chunk-files.ts",
        from: "      if (this.#files.get(name) !== file && file.users === 0) this.#close(file);\n",
        to: "",
      },
      {
        file: "src/storage/chunks/open-chunk-files.ts",
        from: "    if (file.users === 0) this.#close(file);\n",
        to: "    if (file.users === 0 && this.#files.size === 0) this.#close(file);\n",
      },
    ],
  },
  {
    name: "aborted-download-keeps-content",
    is: "the chunks of a download that was broken off stay pinned, so that their files are never unlinked",
    rigs: ["soak"],
    edits: [
      {
        file: "src/fileserver/operations/download.ts",
        from: `        await sendChunks(deps, { caller, reached, content, pump, writer }, range.offset, range.end);
      } catch (error) {`,
        to: `        await sendChunks(deps, { caller, reached, content, pump, writer }, range.offset, range.end);
        content.close();
      } catch (error) {`,
      },
      {
        file: "src/fileserver/operations/download.ts",
        from: "        await pump.end();\n        content.close();\n",
        to: "        await pump.end();\n",
      },
    ],
  },
  {
    name: "aborted-upload-keeps-files",
    is: "chunk files of an upload that was broken off are closed and not unlinked",
    rigs: ["soak"],
    edits: [
      {
        file: "src/storage/chunks/chunk-writer.ts",
        from: "    if (mayUnlink) await this.#store.unlink(this.name);\n",
        to: "    void mayUnlink;\n",
      },
    ],
  },
  {
    name: "log-never-brought-in",
    is: "the write-ahead log is brought into the database only when nothing happens",
    rigs: ["soak"],
    goal: 100,
    edits: [
      {
        file: "src/storage/writer/writer.ts",
        from: "      else this.#checkpointer.start();",
        to: "      else this.#checkpointer.takeDone();",
      },
      {
        file: "src/storage/writer/writer.ts",
        from: "      if (log > (4 * WAL_CHECKPOINT_BYTES) / WAL_FRAME_BYTES)",
        to: "      if (log > (40 * WAL_CHECKPOINT_BYTES) / WAL_FRAME_BYTES)",
      },
    ],
  },
];
