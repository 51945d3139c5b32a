// Messages between the two halves of an upload or download whose connection another thread serves.
import { CHUNK_BYTES } from "#base/limits.ts";
import type { ElsewhereBegin, EndedContent, WrittenChunk } from "#storage/contract/content-elsewhere.ts";
import type { ChunkFault, LentChunk } from "#storage/contract/file-content.ts";

/** Orders to the thread of an upload's connection. */
export type UploadOrder =
  /** The first one. */
  | ({ readonly op: "begin" } & ElsewhereBegin)
  | { readonly op: "take" }
  | { readonly op: "file"; readonly position: number; readonly descriptor: number | undefined }
  | { readonly op: "flushed"; readonly position: number }
  | { readonly op: "end" }
  | { readonly op: "stop" };

/** Its reports. */
export type UploadReport =
  | { readonly op: "took"; readonly crc32: number }
  | { readonly op: "written"; readonly chunk: WrittenChunk }
  | { readonly op: "failed"; readonly text: string; readonly code: string | undefined }
  | { readonly op: "ended"; readonly content: EndedContent }
  | { readonly op: "stopped" };

/** Orders to the thread of a download's connection. */
export type DownloadOrder =
  /** Lends a chunk's file: first to read ahead, then to send. */
  | { readonly op: "lend"; readonly chunk: LentChunk }
  /** Sends the bytes of a lent chunk from an offset of the file to another, of a download up to `end`. */
  | {
      readonly op: "send";
      readonly from: number;
      readonly to: number;
      readonly end: number;
      /** True once the download has a place among the large reads. */
      readonly isLarge: boolean;
    }
  /** Uses no lent file any more. */
  | { readonly op: "stop" };

/** Start of the chunk around an offset of a file: by it both halves name the chunk. */
export function chunkStart(offset: number): number {
  return offset - (offset % CHUNK_BYTES);
}

/** Its report: the file of a lent chunk is no longer in use. */
export interface DownloadReport {
  /** Start of the chunk in the file. */
  readonly startBytes: number;
  /** True when all bytes were sent; else there is a fault, an order to stop, or the end of the call. */
  readonly isSent: boolean;
  readonly fault: ChunkFault | undefined;
}
