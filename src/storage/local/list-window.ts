// Which part of a file's list of chunks a reader needs.
import { CHUNK_BYTES } from "#base/limits.ts";
import type { ByteRange } from "#storage/contract/file-content.ts";
import type { Positions } from "#storage/metadata/content-records.ts";

/**
 * Longest chunk list that is checked against the file's checksum before a read: 1 GB in a millisecond of the
 * main thread. Of files that may have longer ones, reads of a range load their part of the list.
 */
export const LIST_CHECK_CHUNKS = 256;

/** Positions around a range of a file whose list may be long; undefined for all of its list. */
export function windowOf(sizeBytes: number, range: ByteRange | undefined): Positions | undefined {
  if (range === undefined || sizeBytes <= LIST_CHECK_CHUNKS * CHUNK_BYTES) return undefined;
  const from = Math.floor(range.offset / CHUNK_BYTES);
  const below = Math.ceil(range.end / CHUNK_BYTES);
  return from === 0 && below * CHUNK_BYTES >= sizeBytes ? undefined : { from, below };
}
