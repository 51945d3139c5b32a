// Records in the database the directories that may hold chunk files without a row.
import type { OpenDirectories } from "#storage/chunks/chunk-store.ts";
import type { WriteQueue } from "./write-queue.ts";

/** The directories recorded in the metadata database; after a failure of the writer both calls reject. */
export function rememberedDirectories(queue: Pick<WriteQueue, "submit">): OpenDirectories {
  return {
    open: (directory) => queue.submit({ op: "openChunkDirectory", directory }),
    close: (directory) => queue.submit({ op: "closeChunkDirectory", directory }),
  };
}
