// What a copy is asked: what goes where, decided anew whenever it matters.
import type { ChangeContext, InodeId } from "./inode.ts";

/** What is copied where, as the permission check sees it at one moment. */
export interface CopyTarget extends ChangeContext {
  readonly sourceId: InodeId;
  readonly parentId: InodeId;
  readonly name: string;
  readonly onConflict: "fail" | "rename" | "replace";
}

/** One copy. */
export interface CopyOrder {
  /** Whose share of all copies it takes a place of. */
  readonly by: string;
  /** Decides anew; asked before the copy begins and before it comes into sight, and again when a share or a move comes between. */
  readonly target: () => CopyTarget;
  /** Bytes that were claimed for it; a source that grows beyond them while it is copied ends it with OVERLOADED. */
  readonly maxBytes: number;
  /** Inodes that were claimed for it; the same. */
  readonly maxInodes: number;
  /** Asked before each slice is made; what it throws ends the copy. */
  readonly mayGoOn: () => void;
  /** Ends it when its caller has left or has no time any more: nothing of it stays. */
  readonly signal?: AbortSignal | undefined;
}
