// Commands of the writer for resumable uploads.

import type { NewChunk } from "#storage/chunks/chunk-writer.ts";
import type { ChangeFields } from "./change-messages.ts";

/** Begins a resumable upload; the answer is its time. */
export interface CreateUploadCommand extends ChangeFields {
  readonly op: "createUpload";
  readonly uploadId: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly onExists: "replace" | "fail";
  readonly ifMatch: string | undefined;
  readonly mtimeMs: number;
}

/** Stages chunks that follow the staged ones. */
export interface StageUploadCommand {
  readonly op: "stageUpload";
  readonly uploadId: string;
  readonly chunks: readonly NewChunk[];
  readonly nowMs: number;
}

/** Drops a resumable upload with everything staged. */
export interface DropUploadCommand {
  readonly op: "dropUpload";
  readonly uploadId: string;
}

/** Limits the times of uploads at start-up; sent once, before the first call is served. */
export interface BoundUploadTimesCommand {
  readonly op: "boundUploadTimes";
  readonly earliestMs: number;
  readonly latestMs: number;
}
