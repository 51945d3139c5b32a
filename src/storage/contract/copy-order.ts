// The request of a copy: source, target and limits, decided again at each step that matters.
import type { ChangeContext, ExpectedVersions, InodeId, TreeConflictRule } from "./inode.ts";

/** Source and target of a copy, as the permission check sees them at one moment. */
export interface CopyTarget extends ChangeContext, ExpectedVersions {
  readonly sourceId: InodeId;
  readonly parentId: InodeId;
  readonly name: string;
  readonly onConflict: TreeConflictRule;
  /** True for an heir of the whole root, from whom exclusions hide nothing. */
  readonly seesAll?: boolean;
}

/** One copy. */
export interface CopyOrder {
  /** User whose share of the copy slots it takes. */
  readonly by: string;
  /**
   * Decides again: before the copy begins, before it becomes visible, and after a share or a move in between.
   */
  readonly target: () => CopyTarget;
  /** Bytes claimed for the copy; a source that grows beyond them meanwhile ends it with OVERLOADED. */
  readonly maxBytes: number;
  /** Inodes claimed for the copy, with the same rule. */
  readonly maxInodes: number;
  /** Called before each slice; an error that it throws ends the copy. */
  readonly mayGoOn: () => void;
  /** Ends the copy when its caller has left or its deadline has passed; nothing of it stays. */
  readonly signal?: AbortSignal | undefined;
}
