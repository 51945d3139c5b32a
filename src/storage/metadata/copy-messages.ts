// What is asked of the writer for a copy, and what it answers.

import type { InodeId } from "#storage/contract/inode.ts";
import type { ChangeFields, ChangeReply } from "./change-messages.ts";

/** What has been copied into a directory, and is not in its row before all of it is. */
export interface CopySums {
  readonly bytes: number;
  readonly entries: number;
  readonly inodes: number;
  readonly files: number;
  /** Levels below the directory. */
  readonly height: number;
}

/** A directory whose entries are being copied, in order of their names. */
export interface CopyFrame {
  readonly source: InodeId;
  readonly target: InodeId;
  readonly after: string;
  readonly sums: CopySums;
}

/** A chunk list whose positions are being copied; its file appears when it is complete. */
export interface ListCopy {
  readonly fileId: InodeId;
  readonly version: number;
  readonly sourceList: number;
  readonly list: number;
  readonly after: number;
  /** Copied directory that the file goes into; null for the file that was asked for. */
  readonly target: InodeId | null;
}

/** How far a copy has come. It travels with each command, so that a transaction that fails leaves nothing behind in the writer. */
export interface CopyJob {
  /** What the path led to when the copy began; what is in its place at the end may be something else. */
  readonly sourceId: InodeId;
  /** The copied directory, out of sight; null when a file is copied. */
  readonly topId: InodeId | null;
  /** The directory that is being copied, and those around it, the outermost first. */
  readonly frames: readonly CopyFrame[];
  readonly list: ListCopy | null;
  readonly bytes: number;
  /** Inodes made so far. */
  readonly inodes: number;
}

/** What is copied where. */
export interface CopyPlace extends ChangeFields {
  readonly sourceId: InodeId;
  readonly parentId: InodeId;
  readonly name: string;
  readonly onConflict: "fail" | "rename" | "replace";
  /** Bytes and inodes that were claimed for the copy. */
  readonly maxBytes: number;
  readonly maxInodes: number;
}

/** Begins a copy and does its first slice; a small one is finished with it. */
export interface BeginCopyCommand extends CopyPlace {
  readonly op: "beginCopy";
}

/** Does the next slice. */
export interface CopySliceCommand extends ChangeFields {
  readonly op: "copySlice";
  readonly job: CopyJob;
}

/** Makes a complete copy visible. */
export interface FinishCopyCommand extends CopyPlace {
  readonly op: "finishCopy";
  readonly job: CopyJob;
}

/** Drops what a copy has made. */
export interface DropCopyCommand {
  readonly op: "dropCopy";
  readonly job: CopyJob;
}

/** A copy that goes on, or its end. */
export type CopyReply = { readonly job: CopyJob } | ChangeReply;
