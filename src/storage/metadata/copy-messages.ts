// Commands and answers of the writer for copies.

import type { ExpectedVersions, InodeId, TreeConflictRule } from "#storage/contract/inode.ts";
import type { ChangeFields, ChangeReply } from "./change-messages.ts";

/** Sums of the entries copied into a directory so far; its row gets them at the end. */
export interface CopySums {
  readonly bytes: number;
  readonly entries: number;
  readonly inodes: number;
  readonly files: number;
  /** Levels below the directory. */
  readonly height: number;
}

/** A directory whose entries are being copied in order of their names. */
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
  /** Copied directory that gets the file; null for the copied file itself. */
  readonly target: InodeId | null;
}

/** Progress of a copy. It travels with each command, so a failed transaction leaves nothing in the writer. */
export interface CopyJob {
  /** The source when the copy began; another inode may be in its place at the end. */
  readonly sourceId: InodeId;
  /** The copied directory, not yet visible; null when a file is copied. */
  readonly topId: InodeId | null;
  /** The current directory and those around it, the outermost first. */
  readonly frames: readonly CopyFrame[];
  readonly list: ListCopy | null;
  readonly bytes: number;
  /** Inodes made so far. */
  readonly inodes: number;
}

/** A change by a copy. */
export interface CopyChange extends ChangeFields {
  /** See CopyTarget. */
  readonly seesAll?: boolean | undefined;
}

/** Source and target of a copy. */
export interface CopyPlace extends CopyChange, ExpectedVersions {
  readonly sourceId: InodeId;
  readonly parentId: InodeId;
  readonly name: string;
  readonly onConflict: TreeConflictRule;
  /** Bytes and inodes claimed for the copy. */
  readonly maxBytes: number;
  readonly maxInodes: number;
}

/** Begins a copy and does its first slice; a small copy ends with it. */
export interface BeginCopyCommand extends CopyPlace {
  readonly op: "beginCopy";
}

/** Does the next slice. */
export interface CopySliceCommand extends CopyChange {
  readonly op: "copySlice";
  readonly job: CopyJob;
}

/** Makes a complete copy visible. */
export interface FinishCopyCommand extends CopyPlace {
  readonly op: "finishCopy";
  readonly job: CopyJob;
}

/** Drops everything that a copy has made. */
export interface DropCopyCommand {
  readonly op: "dropCopy";
  readonly job: CopyJob;
}

/** A copy that continues, or its end. */
export type CopyReply = { readonly job: CopyJob } | ChangeReply;
