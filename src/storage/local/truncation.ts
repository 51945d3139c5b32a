// Makes the remaining content of a cut file, whose list of chunks may be too long for one command (D15).
import { setImmediate as nextTurn } from "node:timers/promises";
import { crc32Combine, crc32Without } from "#base/crc32-combine.ts";
import { CHUNK_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import type { ChunkOutlet, MadeChunk } from "#storage/chunks/chunk-outlet.ts";
import { ContentChecksums } from "#storage/chunks/content-checksums.ts";
import type { ByteRange } from "#storage/contract/file-content.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { ContentRecord } from "#storage/metadata/content-records.ts";
import { PURGE_SLICE_ROWS } from "#storage/metadata/content-rows.ts";
import type { StageKeptCommand, TruncateCommand } from "#storage/writer/write-commands.ts";
import { LIST_CHECK_CHUNKS } from "./list-window.ts";
import { type ContentDeps, PinnedContent } from "./pinned-content.ts";

/** Chunks whose checksums are combined in one turn of the event loop: a file may have two million. */
const CHUNKS_PER_TURN = 256;
/** Bytes of a file whose chunks are looked up together. */
const WINDOW_BYTES = 2 * CHUNKS_PER_TURN * CHUNK_BYTES;

/** The file to be cut. */
export interface CutFile {
  readonly deps: ContentDeps;
  readonly record: ContentRecord;
  /** True where what is cut off goes for good, and not as a whole into the owner's trash. */
  readonly isOwn: boolean;
  readonly sizeBytes: number;
}

/** What is left of it. */
type Left = Pick<TruncateCommand, "content" | "crc32">;

/** Thrown when the file has changed since its record was read. */
export class FileChanged extends Error {
  override readonly name = "FileChanged";
}

/** The content of a cut file; the caller settles the new chunk in `writers`. Throws FileChanged. */
export async function cutContent(
  file: CutFile,
  chunks: { readonly outlet: ChunkOutlet; readonly writers: MadeChunk[] },
): Promise<Left> {
  const { sizeBytes } = file;
  const crc32 = await crcOfRest(file);
  if (sizeBytes <= INLINE_FILE_MAX_BYTES) {
    const range = { offset: 0, end: sizeBytes };
    const inline = await reading(file, range, (content) => bytesOf(content, range));
    return { content: { inline }, crc32 };
  }
  const position = Math.floor(sizeBytes / CHUNK_BYTES);
  const start = position * CHUNK_BYTES;
  const range = { offset: start, end: sizeBytes };
  if (start === sizeBytes) return { content: { keptBelow: position, chunks: [] }, crc32 };
  const bytes = await reading(file, range, async (content) => {
    const stored = content.storedChunk(position);
    if (stored === undefined) return position;
    // A chunk that is no longer than the rest of its span stays.
    return stored.length <= sizeBytes - start ? position + 1 : bytesOf(content, range);
  });
  if (typeof bytes === "number") return { content: { keptBelow: bytes, chunks: [] }, crc32 };
  const checksums = new ContentChecksums();
  checksums.update(bytes);
  const made = checksums.endChunk();
  const writer = chunks.outlet.begin(position);
  chunks.writers.push(writer);
  writer.append([bytes], bytes.length).catch(() => undefined);
  await Promise.all([chunks.outlet.secure([writer]), writer.finish(made)]);
  return { content: { keptBelow: position, chunks: [writer.record(made)] }, crc32 };
}

/**
 * Stages the kept part of a list slice by slice, where neither it nor what is cut off is short enough for the
 * cutting command. Tells `staged` of the list; the caller drops it without the cut. Throws FileChanged.
 */
export async function stageKept(
  { record, isOwn }: CutFile,
  content: Left["content"],
  submit: (
    slice: Pick<StageKeptCommand, "contentId" | "from" | "below">,
  ) => Promise<{ readonly contentId: number } | undefined>,
  staged: (contentId: number) => void,
): Promise<void> {
  if (!("keptBelow" in content) || content.keptBelow <= PURGE_SLICE_ROWS) return;
  const { keptBelow } = content;
  if (isOwn && Math.ceil(record.inode.sizeBytes / CHUNK_BYTES) - keptBelow <= PURGE_SLICE_ROWS) return;
  let contentId: number | undefined;
  for (let from = 0; from < keptBelow; from += PURGE_SLICE_ROWS) {
    const below = Math.min(keptBelow, from + PURGE_SLICE_ROWS);
    const slice = await submit({ contentId, from, below });
    if (slice === undefined) throw new FileChanged();
    if (contentId === undefined) staged(slice.contentId);
    ({ contentId } = slice);
  }
}

/**
 * Of a huge file that loses less than it keeps, the checksum of the rest follows from that of the whole and of
 * what goes.
 */
async function crcOfRest(file: CutFile): Promise<number> {
  const { sizeBytes, record } = file;
  const { sizeBytes: end, crc32: whole } = record.inode;
  const lostBytes = end - sizeBytes;
  if (end <= LIST_CHECK_CHUNKS * CHUNK_BYTES || lostBytes >= sizeBytes) {
    return crcOf(file, { offset: 0, end: sizeBytes });
  }
  return crc32Without(whole, await crcOf(file, { offset: sizeBytes, end }), lostBytes);
}

async function crcOf(file: CutFile, { offset, end }: ByteRange): Promise<number> {
  let crc = 0;
  for (let at = offset; at < end; ) {
    const window = { offset: at, end: Math.min(end, (Math.floor(at / WINDOW_BYTES) + 1) * WINDOW_BYTES) };
    const part = await reading(file, window, (content) => crcOfWindow(content, window));
    crc = crc32Combine(crc, part, window.end - at);
    at = window.end;
  }
  return crc;
}

async function crcOfWindow(content: PinnedContent, { offset, end }: ByteRange): Promise<number> {
  let crc = 0;
  for (let at = offset; at < end; ) {
    const length = Math.min(CHUNKS_PER_TURN * CHUNK_BYTES, end - at);
    crc = crc32Combine(crc, await content.rangeCrc32(at, length), length);
    at += length;
    await nextTurn();
  }
  return crc;
}

/** Opens a part of the file while it is still as it was recorded; once more where rows have to come for that. */
function reading<T>(
  { deps, record }: CutFile,
  range: ByteRange,
  use: (content: PinnedContent) => Promise<T>,
): Promise<T> {
  return againWhenRowsCome(async () => {
    if (deps.reader.file(record.inode.id).inode.version !== record.inode.version) throw new FileChanged();
    const content = new PinnedContent(deps, record, range);
    try {
      return await use(content);
    } finally {
      content.close();
    }
  });
}

async function bytesOf(content: PinnedContent, { offset, end }: ByteRange): Promise<Buffer> {
  const bytes = Buffer.alloc(end - offset);
  for (let at = offset; at < end; ) {
    const block = await content.readBlock(at);
    at += block.copy(bytes, at - offset, 0, Math.min(block.length, end - at));
  }
  return bytes;
}
