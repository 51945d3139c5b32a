// Reads a file through the store, and compares the bytes.
import { GroveError } from "#base/errors.ts";
import { BLOCK_BYTES } from "#base/limits.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { StoredFile } from "./damage-store.ts";

/** Reads a file to its end, from its beginning or from some block on and then again from its beginning. */
export async function readFile(
  storage: Storage,
  file: Pick<StoredFile, "id" | "bytes">,
  random: SeededRandom,
): Promise<"right" | "refused" | "wrong bytes"> {
  try {
    const content = storage.openFile(file.id);
    try {
      const { sizeBytes } = content.inode;
      const blocks: Buffer[] = [];
      const skipped = random.chance(0.3) ? random.below(Math.ceil(sizeBytes / BLOCK_BYTES)) * BLOCK_BYTES : 0;
      for (let at = skipped; at < sizeBytes; ) {
        const block = await content.readBlock(at);
        if (!block.equals(file.bytes.subarray(at, at + block.length)) && skipped > 0) return "wrong bytes";
        at += block.length;
      }
      for (let at = 0; at < sizeBytes; at += blocks.at(-1)?.length ?? 0)
        blocks.push(await content.readBlock(at));
      const bytes = Buffer.concat(blocks);
      return bytes.equals(file.bytes) ? "right" : "wrong bytes";
    } finally {
      content.close();
    }
  } catch (error) {
    if (error instanceof GroveError) return "refused";
    throw error;
  }
}
