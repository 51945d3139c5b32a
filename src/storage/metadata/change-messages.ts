// What commands and answers of the writer have in common.
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
  readonly nowMs: number;
}

/** An inode as the writer tells of it; createdBy is null when it was the owner. */
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

/** What a change of the namespace did. */
export interface ChangeReply {
  readonly inode: InodeFields;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
}
