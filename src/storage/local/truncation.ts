// Makes the remaining content of a cut file: read and verified, with a new chunk where it ends (D15).
import { setImmediate as nextTurn } from "node:timers/promises";
import { crc32Combine } from "#base/crc32-combine.ts";
import { CHUNK_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import type { ChunkOutlet, MadeChunk } from "#storage/chunks/chunk-outlet.ts";
import { ContentChecksums } from "#storage/chunks/content-checksums.ts";
import type { TruncateCommand } from "#storage/writer/write-commands.ts";
import type { PinnedContent } from "./pinned-content.ts";

/** Chunks whose checksums are combined in one turn of the event loop: a file may have two million. */
const CHUNKS_PER_TURN = 256;

/** The content of a cut file; the caller settles the new chunk in `writers`. */
export async function cutContent(
  content: PinnedContent,
  sizeBytes: number,
  chunks: { readonly outlet: ChunkOutlet; readonly writers: MadeChunk[] },
): Promise<Pick<TruncateCommand, "content" | "crc32">> {
  const crc32 = await crcOfRest(content, sizeBytes);
  if (sizeBytes <= INLINE_FILE_MAX_BYTES) {
    return { content: { inline: await readRange(content, 0, sizeBytes) }, crc32 };
  }
  const position = Math.floor(sizeBytes / CHUNK_BYTES);
  const within = sizeBytes - position * CHUNK_BYTES;
  const stored = content.storedChunk(position);
  // A chunk that is no longer than the rest of its span stays.
  if (within === 0 || stored === undefined) return { content: { keptBelow: position, chunks: [] }, crc32 };
  if (stored.length <= within) return { content: { keptBelow: position + 1, chunks: [] }, crc32 };
  const start = position * CHUNK_BYTES;
  const bytes = await readRange(content, start, start + within);
  const checksums = new ContentChecksums();
  checksums.update(bytes);
  const made = checksums.endChunk();
  const writer = chunks.outlet.begin(position);
  chunks.writers.push(writer);
  writer.append([bytes], bytes.length).catch(() => undefined);
  await Promise.all([chunks.outlet.secure([writer]), writer.finish(made)]);
  return { content: { keptBelow: position, chunks: [writer.record(made)] }, crc32 };
}

async function crcOfRest(content: PinnedContent, sizeBytes: number): Promise<number> {
  let crc = 0;
  for (let at = 0; at < sizeBytes; ) {
    const length = Math.min(CHUNKS_PER_TURN * CHUNK_BYTES, sizeBytes - at);
    crc = crc32Combine(crc, await content.rangeCrc32(at, length), length);
    at += length;
    if (at < sizeBytes) await nextTurn();
  }
  return crc;
}

async function readRange(content: PinnedContent, from: number, to: number): Promise<Buffer> {
  const bytes = Buffer.alloc(to - from);
  for (let at = from; at < to; ) {
    const block = await content.readBlock(at);
    at += block.copy(bytes, at - from, 0, Math.min(block.length, to - at));
  }
  return bytes;
}
