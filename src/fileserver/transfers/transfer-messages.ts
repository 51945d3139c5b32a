// Messages between the two halves of an upload or download whose connection another thread serves.
import type { ElsewhereBegin, EndedContent, WrittenChunk } from "#storage/contract/content-elsewhere.ts";
import type { ChunkFault, LentChunk } from "#storage/contract/storage.ts";

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
  /** Sends the bytes of a chunk from an offset of the file to another. */
  | { readonly op: "send"; readonly chunk: LentChunk; readonly from: number; readonly to: number }
  /** Uses the lent file no more. */
  | { readonly op: "stop" };

/** Its report: the file is no longer in use. */
export interface DownloadReport {
  /** True when all bytes were sent; else there is a fault, an order to stop, or the end of the call. */
  readonly isSent: boolean;
  readonly fault: ChunkFault | undefined;
}
