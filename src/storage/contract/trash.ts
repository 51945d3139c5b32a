// The trash of a root as callers see it: items that were put away whole, and what becomes of them (D14).
import type { Change, ChangeContext, Counted, InodeId, InodeKind, Usage } from "./inode.ts";

/** A share that an item of the trash had; it counts no more, and can be given again after a restore. */
export interface FormerShare {
  /** Names below the item; empty for the item itself. */
  readonly names: readonly string[];
  readonly username: string;
}

/** One item: a file, or a folder with all that is in it. */
export interface TrashItem {
  /** Begins with the time, so that ids sort by it. */
  readonly id: string;
  readonly kind: InodeKind;
  readonly originalPath: string;
  readonly sizeBytes: number;
  /** Itself included. */
  readonly inodeCount: number;
  readonly trashedAtMs: number;
  /** Username. */
  readonly trashedBy: string;
  /** At most TRASH_FORMER_SHARES_LISTED. */
  readonly formerShares: readonly FormerShare[];
}

/** An item in a listing. */
export interface ListedTrashItem extends TrashItem {
  /** True when the folder that it was in is (again) there. */
  readonly parentExists: boolean;
}

/** One page of the trash, the newest first. */
export interface TrashPage {
  readonly items: readonly ListedTrashItem[];
  readonly nextPageToken: string | undefined;
}

/** Which items of a root's trash are asked for. */
export interface TrashQuery {
  readonly limit: number;
  readonly pageToken: string;
  /** Only this item. */
  readonly id?: string;
  /** Only what was at this path. */
  readonly originalPath?: string;
}

/** What a purge needs to know of an item. */
export interface TrashHead {
  readonly owner: string;
  readonly id: string;
  readonly trashedAtMs: number;
  readonly sizeBytes: number;
}

/** An item that is gone for good. */
export interface PurgedItem {
  readonly id: string;
  readonly originalPath: string;
  readonly sizeBytes: number;
  readonly inodeCount: number;
}

/** What went into the trash. */
export interface Trashed {
  readonly item: TrashItem;
  readonly usage: Usage;
  /** Always 0: the trash counts in the quota. */
  readonly usedDeltaBytes: number;
}

/** What came out of it. */
export interface Restored extends Change {
  /** Names from the root down to where it is now. */
  readonly names: readonly string[];
  readonly formerShares: readonly FormerShare[];
}

/** What a purge removed. */
export interface TrashPurge {
  readonly items: readonly PurgedItem[];
  readonly freedBytes: number;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
}

/** The part of Storage that is about the trash. */
export interface TrashStorage {
  /**
   * Takes an inode with all that is below it out of the tree, in a time that does not depend on how much that is. Nothing in it can be
   * reached by any path from then on; its shares are taken back. BAD_ARGUMENT for the root directory itself.
   */
  trash(change: ChangeContext & { inodeId: InodeId }): Promise<Counted<Trashed>>;
  /**
   * Puts an item back: to the given names below the root, or to where it was. Missing folders on the way are made. Throws NO_SUCH_PATH for
   * an item that is not there, NOT_DIRECTORY when a file lies on the way, PATH_EXISTS, and what a replacing rename is refused with.
   */
  restore(
    change: ChangeContext & {
      trashId: string;
      names: readonly string[] | undefined;
      onConflict: "fail" | "rename" | "replace";
    },
  ): Promise<Restored>;
  /** Removes at most TRASH_PURGE_BATCH items for good; those that are not there are passed over. */
  purgeTrash(purge: { owner: string; trashIds: readonly string[] }): Promise<Counted<TrashPurge>>;
  /** One page of a root's trash. Throws NO_SUCH_PATH for no root, BAD_ARGUMENT for a foreign token. */
  listTrash(owner: string, query: TrashQuery): TrashPage;
  /** Items of all roots that were trashed before a time, the oldest first. */
  trashBefore(timeMs: number, limit: number): TrashHead[];
  /** The same of one root. */
  oldestTrash(owner: string, beforeMs: number, limit: number): TrashHead[];
}

/** The id of what is trashed at a time: sorts by time, then by inode. */
export function trashIdOf(timeMs: number, inodeText: string): string {
  return `${Math.max(0, timeMs).toString(36).padStart(TIME_DIGITS, "0")}-${inodeText}`;
}

/** Enough for 3,000 years of milliseconds. */
const TIME_DIGITS = 9;
