// What a FileServer stores, as whole commands: the interface behind which SQLite and chunk files do the work.

import type { CopyOrder } from "./copy-order.ts";
import type { Change, ChangeContext, Inode, InodeId, UploadSink, Usage } from "./inode.ts";
import type { RecountSettings, RecountState } from "./recount-types.ts";
import type { ScrubSettings, ScrubState } from "./scrub-types.ts";
import type { TrashStorage } from "./trash.ts";
import type { UploadStore } from "./upload-store.ts";

/** One user's root. */
export interface RootRecord {
  /** Username of the owner. */
  readonly owner: string;
  /** ULID given by the MetaServer. */
  readonly rootId: string;
  readonly directoryId: InodeId;
  /** Grows with everything that can change who may reach what: shares, moves of directories, trash and restore. */
  readonly accessVersion: number;
  readonly usage: Usage;
}

/** What a path leads to, read in one snapshot. */
export interface Resolution {
  readonly root: RootRecord;
  /** Existing inodes from the root directory down; the last one is the deepest that exists. */
  readonly chain: readonly [Inode, ...Inode[]];
  /** Names below the last of the chain that do not exist; empty when the path exists. */
  readonly missing: readonly string[];
  /** Users with whom the last of the chain is shared: whose nearest row, on it or on a directory above it, is a grant and no exclusion. */
  readonly shared: readonly string[];
}

/** What a removal did. */
export interface Removal {
  readonly freedBytes: number;
  readonly inodeCount: number;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
  readonly inodeDelta: number;
}

/** What a share or its end did. */
export interface Sharing {
  /** Inodes that the share covers: the shared one and everything below it; 0 when nothing was changed. */
  readonly affectedInodes: number;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
  readonly inodeDelta: number;
}

/** One user and the path at which a grant lets that user in. */
export interface SharedPath {
  readonly path: string;
  readonly username: string;
}

/** Where a user is let into a root, and where not any more below that. Of the paths on the way to a place the longest decides. */
export interface UserPaths {
  readonly granted: readonly string[];
  readonly excluded: readonly string[];
}

/** A share, or what somebody was taken out of, as its owner sees it. */
export interface ListedShare extends SharedPath {
  /** True where the user is taken out of what a share above gives. */
  readonly isExcluded: boolean;
  /** Username of who made it. */
  readonly by: string;
  readonly atMs: number;
}

/** Which shares are listed: at a path and below it, behind one of them, in the order of path and user. */
export interface ShareListPlace {
  readonly path: string;
  readonly after: SharedPath;
  /** From 1. */
  readonly limit: number;
}

/** One page of them, which has SHARE_PAGE_BYTES of paths at most, or a single share. */
export interface ShareListPage {
  readonly shares: readonly ListedShare[];
  readonly isLast: boolean;
}

/** What one user has at an inode itself. */
export interface OwnShare {
  readonly inodeId: InodeId;
  readonly username: string;
  readonly isExcluded: boolean;
}

/** One version of a file, pinned: later changes and removals do not touch what is read through it. */
export interface FileContent {
  readonly inode: Inode;
  /**
   * Reads from offset to the end of that block (262,144 bytes, aligned within chunks of 4,000,000) or of the file. The bytes were checked
   * against their stored CRC-32; throws CORRUPT instead of returning wrong ones. They lie in `into` where one of BLOCK_BYTES is given,
   * which saves a sender of much the memory for each block; it must not be touched until the promise is settled.
   */
  readBlock(offset: number, into?: Buffer): Promise<Buffer>;
  /** CRC-32 of a range, from stored block checksums and the verified bytes at its edges. Throws CORRUPT. */
  rangeCrc32(offset: number, length: number): number | Promise<number>;
  /** Unpins. */
  close(): void;
}

/** The order of a listing; ties are broken by name. */
export type ListSort = "name" | "name-desc" | "size" | "size-desc" | "mtime" | "mtime-desc";

/** Users of the grants and of the exclusions on one inode, in order. */
export interface OwnShares {
  readonly shared: readonly string[];
  readonly excluded: readonly string[];
}

/** Which page of a directory, in which order. */
export interface ListQuery {
  readonly limit: number;
  readonly pageToken: string;
  readonly sort: ListSort;
  /** A user who is not told of entries that an exclusion keeps from that user. */
  readonly hiddenFrom?: string | undefined;
}

/** A listing that is sorted elsewhere, on whose account, and until when it is wanted. */
export interface SortedOrder {
  readonly user: string;
  readonly signal: AbortSignal;
  /** Decides what is listed; asked when its turn has come. Rejected as stale when the root's access version is another by then. */
  readonly query: () => ListQuery & {
    readonly owner: string;
    readonly accessVersion: number;
    readonly directoryId: InodeId;
  };
}

/** One page of a directory. */
export interface ListPage {
  readonly entries: readonly Inode[];
  /** Users with whom an entry is shared by a grant on itself, and those that an exclusion on it takes out; nothing for entries without either. */
  readonly own: ReadonlyMap<InodeId, OwnShares>;
  /** Where to go on; undefined at the end. */
  readonly nextPageToken: string | undefined;
}

/** Stored bytes that were newly found damaged. */
export interface DamageFound {
  /** The file whose bytes they are, where they lie in the database. */
  readonly inode?: InodeId;
  /** The chunk that they are part of. */
  readonly chunk?: number;
  /** What is wrong, in words. */
  readonly problem: string;
  /** Files that cannot be read any more because of it: copies share chunks. */
  readonly files: number;
}

/** A file whose stored bytes were found wrong. */
export interface DamagedFile {
  readonly owner: string;
  /** Where it is, or was before it was trashed. */
  readonly path: string;
  readonly isTrashed: boolean;
  readonly inode: InodeId;
  readonly sizeBytes: number;
}

/** What is damaged now. */
export interface DamagedFiles {
  readonly count: number;
  /** The first DAMAGED_FILES_LISTED of them. */
  readonly listed: readonly DamagedFile[];
}

/** Facts for the metrics document; kept as counters, never counted by scanning. */
export interface StorageFacts {
  readonly chunkCount: number;
  readonly inodeCount: number;
  readonly trashBytes: number;
  readonly stagingBytes: number;
}

/** Who is let in where besides the owners (spec 4.5, T24). Reads are answered like those of Storage. */
export interface ShareStorage {
  /**
   * Paths in a root at which grants let a user in and exclusions end that, at most GRANTS_PER_ROOT. What this costs tells nothing of the
   * root: it depends on the user's own rows alone, whether or not there is such a root (D1).
   */
  pathsOf(owner: string, username: string): UserPaths;
  /** Users who reach an inode by a grant on it or above it, with no exclusion between; undefined for what cannot be reached (any more). */
  usersOf(inodeId: InodeId): readonly string[] | undefined;
  /** Grants and exclusions at a path of a root and below it. */
  listed(owner: string, place: ShareListPlace): ShareListPage;
  /** Grants and exclusions at inodes, in their order. */
  at(inodeIds: readonly InodeId[]): OwnShare[];
  /** All grants of a root by path and user. */
  ofRoot(owner: string): readonly SharedPath[];
  /** All grants by owner, for the registration of this node. */
  all(): ReadonlyMap<string, readonly SharedPath[]>;
  /** Calls back when grants of a root, or the paths at which they hang, may have changed; reads then see the new state. */
  onChange(callback: (owners: readonly string[]) => void): void;
  /**
   * Lets a user reach an inode and everything below it, now and later; takes the same time at any size (T24). Exclusions there end. Throws
   * SHARE_LIMIT, and BAD_ARGUMENT for the owner.
   */
  grant(change: GrantChange): Promise<Sharing>;
  /**
   * Ends that for the inode and everything below it, by an exclusion where a grant above would go on; takes the same time at any size.
   * Throws SHARE_LIMIT when there is no room for the exclusion, and BAD_ARGUMENT for the owner. Works on a full disk.
   */
  revoke(change: GrantChange): Promise<Sharing>;
}

/** A grant to be made or ended. */
export interface GrantChange extends ChangeContext {
  readonly inodeId: InodeId;
  readonly username: string;
}

/** An upload that is about to begin. */
export interface WantedUpload {
  readonly owner: string;
  /** Who uploads, where it is not the owner. */
  readonly by?: string;
  readonly sizeBytes: number | undefined;
}

/**
 * Files, directories and their sizes. It knows no quota and no permission. All times are wall milliseconds, all sizes bytes. Errors are
 * GroveErrors: NO_SUCH_PATH, PATH_EXISTS, NOT_DIRECTORY, IS_DIRECTORY, NOT_EMPTY, ETAG_MISMATCH, BAD_ARGUMENT, CORRUPT, and STORAGE_FAILED
 * for every change after a flush has failed; DISK_RESERVE when the disk is full, OVERLOADED when too many changes wait.
 */
export interface Storage extends TrashStorage {
  /** The identity of the data directory: a ULID made when it was. */
  readonly dataId: string;
  /** Why changes are refused for good, once a flush has failed. */
  readonly failure: string | undefined;
  /** Calls back once when a flush fails. */
  onFailure(callback: (reason: string) => void): void;
  facts(): StorageFacts;
  /** Calls back when a read or the scrub finds damage that was not known; the files are marked by then. */
  onDamage(callback: (found: DamageFound) => void): void;
  /** Files that were marked since the start of the process. */
  readonly damageFoundTotal: number;
  /** Files marked as damaged now; its work grows with their number only. */
  damagedFiles(): DamagedFiles;
  /** Has everything read again and again in the background, from where the last run of the process left off. Call it once. */
  startScrub(settings: ScrubSettings): void;
  /** How far it has come. */
  scrubState(): ScrubState;
  /** Has all counters compared with what they count, again and again, from where the last run of the process left off. Call it once. */
  startRecount(settings: RecountSettings): void;
  /** How far that has come, and what it has found. */
  recountState(): RecountState;

  /** Reads are answered from one snapshot that holds every change acknowledged before; they are synchronous and take microseconds. */
  root(owner: string): RootRecord | undefined;
  roots(): RootRecord[];
  /** Resolves canonical names below a root. Throws NO_SUCH_PATH only when the root does not exist. */
  resolve(owner: string, names: readonly string[]): Resolution;
  /**
   * One page of a directory, keyset-paged: entries present throughout are listed exactly once. Throws BAD_ARGUMENT for a foreign token.
   * With another order than by name the work grows with the directory: above LIST_SORT_AT_ONCE entries it is for `listSorted`.
   */
  list(directoryId: InodeId, page: ListQuery): ListPage;
  /** The same, sorted in a thread of its own, users in turn. Throws OVERLOADED when too many wait, and StaleAccessError. */
  listSorted(order: SortedOrder): Promise<ListPage>;
  /** Inodes below a directory, 0 for a file and for what is gone; kept as a sum, never counted. */
  inodesBelow(id: InodeId): number;
  /** Pins the current version of a file. Throws NO_SUCH_PATH when it is gone. */
  openFile(fileId: InodeId): FileContent;

  /** Makes a root; the same rootId again is answered with the root that exists. */
  createRoot(root: { owner: string; rootId: string }): Promise<RootRecord>;
  createDirectory(change: ChangeContext & { parentId: InodeId; name: string }): Promise<Change>;
  /** A whole small file (at most 65,536 bytes) in one transaction. Throws PATH_EXISTS. */
  createFile(
    change: ChangeContext & { parentId: InodeId; name: string; data: Uint8Array; mtimeMs: number },
  ): Promise<Change>;
  /** Uploads that outlive their streams and restarts. */
  readonly uploads: UploadStore;
  readonly shares: ShareStorage;
  /** Opens a sink for content whose size may be known (then chunk files are laid out for it). */
  beginUpload(upload: WantedUpload): UploadSink;
  /** Rewrites a range by copy, growing the file if the range ends behind it; a hole before offset reads as zeros. */
  writeRange(
    change: ChangeContext & {
      fileId: InodeId;
      offset: number;
      data: Uint8Array;
      ifMatch: string | undefined;
    },
  ): Promise<Change>;
  /**
   * Cuts or grows a file to a size; what it grows by is a hole and reads as zeros. What a user other than the owner cuts off goes, with
   * the rest of the old content, to the owner's trash (D13). Throws ETAG_MISMATCH, CORRUPT where it is cut within damaged bytes.
   */
  setSize(
    change: ChangeContext & { fileId: InodeId; sizeBytes: number; ifMatch: string | undefined },
  ): Promise<Change>;
  /** Moves or renames inside one root. "rename" finds a free name. Moving a directory into itself is BAD_ARGUMENT. */
  rename(
    change: ChangeContext & {
      inodeId: InodeId;
      parentId: InodeId;
      name: string;
      /** See ChangeContext.at: the path that was followed to the new place. */
      targetAt?: string;
      onConflict: "fail" | "rename" | "replace";
    },
  ): Promise<Change>;
  /**
   * Copies inside one root by sharing chunks; files keep their times of change. A directory appears as a whole or not at all, while other
   * changes go on. Throws OVERLOADED when the source changes too much meanwhile or too many copies wait, RATE_LIMITED when too many of the
   * same user do, and the signal's reason when that ends it.
   */
  copy(order: CopyOrder): Promise<Change>;
  /** Removes for good. NOT_EMPTY unless recursive; the root directory itself is BAD_ARGUMENT. */
  remove(change: ChangeContext & { inodeId: InodeId; recursive: boolean }): Promise<Removal>;

  /** Waits for running changes, checkpoints and closes. Later calls throw STORAGE_FAILED. */
  close(): Promise<void>;
}
