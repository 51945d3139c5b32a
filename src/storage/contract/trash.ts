// The trash of a root for callers: whole items that can be restored or purged (D14).
import type {
  Change,
  ChangeContext,
  ConflictRule,
  Counted,
  FormerShare,
  InodeId,
  InodeKind,
  Usage,
} from "./inode.ts";

/** One item: a file, or a folder with everything in it. */
export interface TrashItem {
  /** Begins with the time, so that ids sort by it. */
  readonly id: string;
  readonly kind: InodeKind;
  readonly originalPath: string;
  readonly sizeBytes: number;
  /** The item included. */
  readonly inodeCount: number;
  readonly trashedAtMs: number;
  /** Username. */
  readonly trashedBy: string;
  /** At most TRASH_FORMER_SHARES_LISTED. */
  readonly formerShares: readonly FormerShare[];
}

/** An item in a listing. */
export interface ListedTrashItem extends TrashItem {
  /** True when its former folder exists (again). */
  readonly parentExists: boolean;
}

/** One page of the trash, the newest first. */
export interface TrashPage {
  readonly items: readonly ListedTrashItem[];
  readonly nextPageToken: string | undefined;
}

/** Selects items of a root's trash. */
export interface TrashQuery {
  readonly limit: number;
  readonly pageToken: string;
  /** Only this item. */
  readonly id?: string;
  /** Only items from this path. */
  readonly originalPath?: string;
}

/** The facts of an item that a purge needs. */
export interface TrashHead {
  readonly owner: string;
  readonly id: string;
  readonly trashedAtMs: number;
  readonly sizeBytes: number;
}

/** A purged item. */
export interface PurgedItem {
  readonly id: string;
  readonly originalPath: string;
  readonly sizeBytes: number;
  readonly inodeCount: number;
}

/** Result of a trash operation. */
export interface Trashed {
  readonly item: TrashItem;
  readonly usage: Usage;
  /** Always 0: the trash counts in the quota. */
  readonly usedDeltaBytes: number;
}

/** Result of a restore. */
export interface Restored extends Change {
  /** Names from the root down to the new place. */
  readonly names: readonly string[];
  readonly formerShares: readonly FormerShare[];
}

/** Result of a purge. */
export interface TrashPurge {
  readonly items: readonly PurgedItem[];
  readonly freedBytes: number;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
}

/** The trash operations of Storage. */
export interface TrashStorage {
  /**
   * Moves an inode and everything below it to the trash, in the same time at any size. From then on no path
   * reaches it, and its shares are taken back. BAD_ARGUMENT for the root directory itself, ETAG_MISMATCH where
   * the inode has another etag than the given one.
   */
  trash(
    change: ChangeContext & { inodeId: InodeId; ifMatch?: string | undefined },
  ): Promise<Counted<Trashed>>;
  /**
   * Restores an item to the given names below the root, or to its former place. Makes missing folders on the
   * way. Throws NO_SUCH_PATH for a missing item, NOT_DIRECTORY when a file lies on the way, PATH_EXISTS, and
   * the refusals of a replacing rename.
   */
  restore(
    change: ChangeContext & {
      trashId: string;
      names: readonly string[] | undefined;
      onConflict: ConflictRule;
    },
  ): Promise<Restored>;
  /** Removes at most TRASH_PURGE_BATCH items for good; missing ones are skipped. */
  purgeTrash(purge: { owner: string; trashIds: readonly string[] }): Promise<Counted<TrashPurge>>;
  /** One page of a root's trash. Throws NO_SUCH_PATH for a missing root, BAD_ARGUMENT for a foreign token. */
  listTrash(owner: string, query: TrashQuery): TrashPage;
  /** Items of all roots that were trashed before a time, the oldest first. */
  trashBefore(timeMs: number, limit: number): TrashHead[];
  /** Items of one root that were trashed before a time, the oldest first. */
  oldestTrash(owner: string, beforeMs: number, limit: number): TrashHead[];
}

/** The id of an item trashed at a time: sorts by time, then by inode. */
export function trashIdOf(timeMs: number, inodeText: string): string {
  return `${Math.max(0, timeMs).toString(36).padStart(TIME_DIGITS, "0")}-${inodeText}`;
}

/** Enough for 3,000 years in milliseconds. */
const TIME_DIGITS = 9;
