// Common fields of the writer's commands and answers.
import type { InodeId, InodeKind, Usage } from "#storage/contract/inode.ts";

/** Common to all changes of a root's namespace; times are wall milliseconds of the main thread's clock. */
export interface ChangeFields {
  readonly owner: string;
  readonly accessVersion: number | undefined;
  readonly by: string;
  /** See ChangeContext. */
  readonly at?: string | undefined;
  /** See ChangeContext. */
  readonly maxInodes?: number | undefined;
  /** See ChangeContext. */
  readonly maxAddedBytes?: number | undefined;
  /** See ChangeContext. */
  readonly lockVersion?: number | undefined;
  readonly nowMs: number;
}

/** An inode in an answer of the writer; createdBy is null for the owner. */
export interface InodeFields {
  readonly id: InodeId;
  readonly parentId: InodeId | null;
  readonly name: string;
  readonly kind: InodeKind;
  readonly sizeBytes: number;
  readonly childCount: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly version: number;
  readonly crc32: number;
  readonly createdBy: string | null;
  readonly damaged: boolean;
}

/** Answer to a change of the namespace. */
export interface ChangeReply {
  readonly inode: InodeFields;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
}
