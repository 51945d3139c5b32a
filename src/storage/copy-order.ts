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
  /** Decides anew; asked before the copy begins and before it comes into sight, and again when a share or a move comes between. */
  readonly target: () => CopyTarget;
  /** Bytes that were claimed for it; a source that grows beyond them while it is copied ends it with OVERLOADED. */
  readonly maxBytes: number;
}
