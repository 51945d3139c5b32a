// Has the writer remember in which directories chunk files may lie that have no row.
import type { OpenDirectories } from "#storage/chunks/chunk-store.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Directories as the metadata database knows them; after a failure of the writer both calls reject. */
export function rememberedDirectories(queue: Pick<WriteQueue, "submit">): OpenDirectories {
  return {
    open: (directory) => queue.submit({ op: "openChunkDirectory", directory }),
    close: (directory) => queue.submit({ op: "closeChunkDirectory", directory }),
  };
}
