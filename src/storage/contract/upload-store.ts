// Resumable uploads as storage keeps them: staged content that outlives streams and restarts (decision D15).
import type { ContentElsewhere } from "./content-elsewhere.ts";
import type { Change, ChangeContext, Counted, UploadSink, UploadTarget, Usage } from "./inode.ts";

/** A new resumable upload; its fields are fixed when it begins. */
export interface NewUpload extends ChangeContext {
  readonly uploadId: string;
  /** Canonical path inside the root, "/" first. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly onExists: "replace" | "fail";
  readonly ifMatch: string | undefined;
  readonly mtimeMs: number;
}

/** A resumable upload and its progress on stable storage. */
export interface StoredUpload extends Omit<NewUpload, "accessVersion"> {
  /**
   * Bytes on stable storage, as whole chunks, or the full size once all was sent: a stream continues here.
   */
  readonly stagedBytes: number;
  /** When it began or last advanced, on the clock of `UploadStore.nowMs`. */
  readonly touchedAtMs: number;
}

/** Effect of staging or dropping content on its root. */
export interface StagingChange {
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
}

/**
 * The sink of one stream of a resumable upload. Whole chunks are staged once they are durable and their
 * message was accepted. Abort drops the upload with everything staged, suspend keeps it.
 */
export interface ResumableSink extends UploadSink {
  /** Confirms the checksum of the last message: its bytes may be kept. */
  acceptMessage(): void;
  /**
   * Ends the stream: stages accepted whole chunks and drops the rest. Settles when no write is left; rejects
   * when a chunk could not be staged.
   */
  suspend(): Promise<void>;
  commit(target: UploadTarget): Promise<Change>;
}

/** Keeps resumable uploads. A user has at most UPLOADS_KEPT_PER_USER. */
export interface UploadStore {
  /**
   * Milliseconds that no step of the wall clock moves while the process runs; a restart sets them to the wall
   * clock.
   */
  nowMs(): number;
  /**
   * Begins an upload. Throws TOO_MANY_UPLOADS, and StaleAccessError when the permission check is outdated.
   */
  create(upload: NewUpload): Promise<StoredUpload>;
  /** Returns an upload; undefined when it is missing. */
  find(uploadId: string): StoredUpload | undefined;
  /**
   * Opens the upload's one stream at stagedBytes. `onStaged` receives every change of the staged bytes.
   * Throws NO_SUCH_UPLOAD. With `elsewhere`, that thread moves the bytes.
   */
  open(
    uploadId: string,
    onStaged: (change: StagingChange) => void,
    elsewhere?: ContentElsewhere,
  ): ResumableSink;
  /** Drops an upload with everything staged; its stream must have ended. Throws NO_SUCH_UPLOAD. */
  drop(uploadId: string): Promise<Counted<StagingChange>>;
  /** Uploads untouched since a time, the longest untouched first, or those that follow one of them. */
  untouchedSince(timeMs: number, limit: number, after?: StoredUpload): StoredUpload[];
  /**
   * Uploads into others' roots whose users have lost the right to write at the target, or those that follow
   * one of them.
   */
  shutOut(limit: number, after?: StoredUpload): StoredUpload[];
  /** Uploads of a user, in any root. */
  ofUser(username: string, limit: number): StoredUpload[];
}
