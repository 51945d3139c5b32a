// Resumable uploads as storage keeps them: staged content that outlives streams and restarts (decision D15).
import type { Change, ChangeContext, Counted, UploadSink, UploadTarget, Usage } from "./inode.ts";

/** What a resumable upload is going to be; fixed when it begins. */
export interface NewUpload extends ChangeContext {
  readonly uploadId: string;
  /** Canonical path inside the root, "/" first. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly onExists: "replace" | "fail";
  readonly ifMatch: string | undefined;
  readonly mtimeMs: number;
}

/** A resumable upload and how far it has come on stable storage. */
export interface StoredUpload extends Omit<NewUpload, "accessVersion"> {
  /** Whole chunks that lie on stable storage, or everything once all was sent: where a stream goes on. */
  readonly stagedBytes: number;
  /** When it began or last moved, on the clock of `UploadStore.nowMs`. */
  readonly touchedAtMs: number;
}

/** What staging or dropping content did to its root. */
export interface StagingChange {
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
}

/**
 * The sink of one stream of a resumable upload. Whole chunks are staged as they become durable, once their message was accepted; abort
 * drops the upload with all that was staged, suspend keeps it.
 */
export interface ResumableSink extends UploadSink {
  /** The bytes of the last message are what its sender meant: they may be kept. */
  acceptMessage(): void;
  /**
   * Ends the stream: whole chunks that were accepted are staged, the rest is dropped. Settles when nothing of it moves any more; rejects
   * when not all of them could be staged.
   */
  suspend(): Promise<void>;
  commit(target: UploadTarget): Promise<Change>;
}

/** Keeps resumable uploads. A user has at most UPLOADS_KEPT_PER_USER. */
export interface UploadStore {
  /** Milliseconds that no step of the wall clock moves while the process runs; across restarts they follow the wall clock. */
  nowMs(): number;
  /** Begins one. Throws TOO_MANY_UPLOADS, and StaleAccessError when the permission check was overtaken. */
  create(upload: NewUpload): Promise<StoredUpload>;
  /** Looks one up. */
  find(uploadId: string): StoredUpload | undefined;
  /** Opens its one stream at stagedBytes. `onStaged` hears of every change of what is staged. Throws NO_SUCH_UPLOAD. */
  open(uploadId: string, onStaged: (change: StagingChange) => void): ResumableSink;
  /** Drops one with all that it staged; its stream must have ended. Throws NO_SUCH_UPLOAD. */
  drop(uploadId: string): Promise<Counted<StagingChange>>;
  /** Uploads that were not touched since a time, the longest untouched first. */
  untouchedSince(timeMs: number, limit: number): StoredUpload[];
  /** Uploads into roots of others whose users may not write any more where they were to go. */
  shutOut(limit: number): StoredUpload[];
  /** Uploads that a user has begun, wherever. */
  ofUser(username: string, limit: number): StoredUpload[];
}
