// Reads gathered audit lines from the newest back, in bounded steps that a cursor continues.
import { type FileHandle, open } from "node:fs/promises";
import type { AuditCopies, CopyPlace } from "./audit-copies.ts";
import { type CopiedLine, readCopied } from "./copied-line.ts";

/** Bytes read at a time. */
const BLOCK_BYTES = 262_144;

/**
 * Visits the lines before a place (default: the end), newest first, until the visitor returns false, so many
 * bytes were read, or there are no more. Returns the place at which to continue; undefined at the beginning
 * of all.
 */
export async function scanCopies(
  copies: AuditCopies,
  from: CopyPlace | undefined,
  maxBytes: number,
  visit: (line: CopiedLine) => boolean,
): Promise<CopyPlace | undefined> {
  const start = from ?? copies.end;
  const files = (await copies.files()).filter(({ firstSeq }) => firstSeq <= start.file).toReversed();
  let left = maxBytes;
  for (const { path, firstSeq } of files) {
    const handle = await openOrGone(path);
    if (handle === undefined) continue;
    try {
      const { size } = await handle.stat();
      // Bytes under way behind the end are not read.
      const bound = firstSeq === copies.end.file ? copies.end.offset : size;
      let end = Math.min(bound, firstSeq === start.file ? start.offset : size);
      let tail = Buffer.alloc(0);
      while (end > 0) {
        if (left <= 0) return { file: firstSeq, offset: end + tail.length };
        const length = Math.min(BLOCK_BYTES, end);
        const block = Buffer.alloc(length);
        await handle.read(block, 0, length, end - length);
        left -= length;
        end -= length;
        const bytes = Buffer.concat([block, tail]);
        // The first piece may begin in the block before.
        const first = end === 0 ? 0 : bytes.indexOf(10) + 1;
        if (first === 0 && end > 0) {
          tail = bytes;
          continue;
        }
        const stopped = visitBack(bytes, first, visit);
        if (stopped !== undefined) return { file: firstSeq, offset: end + stopped };
        tail = Buffer.from(bytes.subarray(0, first));
      }
    } finally {
      await handle.close();
    }
  }
  return undefined;
}

/** Undefined for a file that was rotated away, or does not exist yet. */
async function openOrGone(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Visits the lines of some bytes from the last to the first; returns the start of the line at which the
 * visitor stopped.
 */
function visitBack(bytes: Buffer, first: number, visit: (line: CopiedLine) => boolean): number | undefined {
  let end = bytes.length;
  while (end > first) {
    const begin = end < 2 ? first : Math.max(first, bytes.lastIndexOf(10, end - 2) + 1);
    const line = readCopied(bytes.toString("utf8", begin, bytes[end - 1] === 10 ? end - 1 : end));
    if (line !== undefined && !visit(line)) return begin;
    end = begin;
  }
  return undefined;
}
