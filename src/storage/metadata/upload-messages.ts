// What is asked of the writer for resumable uploads.

import type { NewChunk } from "#storage/chunks/chunk-writer.ts";
import type { ChangeFields } from "./change-messages.ts";

/** Begins a resumable upload; answered with its time. */
export interface CreateUploadCommand extends ChangeFields {
  readonly op: "createUpload";
  readonly uploadId: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly onExists: "replace" | "fail";
  readonly ifMatch: string | undefined;
  readonly mtimeMs: number;
}

/** Keeps chunks that follow those which are staged. */
export interface StageUploadCommand {
  readonly op: "stageUpload";
  readonly uploadId: string;
  readonly chunks: readonly NewChunk[];
  readonly nowMs: number;
}

/** Drops a resumable upload with all that it staged. */
export interface DropUploadCommand {
  readonly op: "dropUpload";
  readonly uploadId: string;
}

/** Brings the times of uploads into what a start may know of the time since; sent once, before anything is served. */
export interface BoundUploadTimesCommand {
  readonly op: "boundUploadTimes";
  readonly earliestMs: number;
  readonly latestMs: number;
}
