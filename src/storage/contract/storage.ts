// The interface of a FileServer's storage, as whole commands; SQLite and chunk files implement it.

import type { ContentElsewhere } from "./content-elsewhere.ts";
import type { CopyOrder } from "./copy-order.ts";
import type { ByteRange, FileContent } from "./file-content.ts";
import type {
  Change,
  ChangeContext,
  ExpectedVersions,
  Inode,
  InodeId,
  TreeConflictRule,
  UploadSink,
  Usage,
} from "./inode.ts";
import type { LinkStorage } from "./links.ts";
import type { LockStorage } from "./locks.ts";
import type { PropertyStorage } from "./properties.ts";
import type { RecountSettings, RecountState } from "./recount-types.ts";
import type { RootMoveStorage } from "./root-move.ts";
import type { ScrubSettings, ScrubState } from "./scrub-types.ts";
import type { TrashStorage } from "./trash.ts";
import type { UploadStore } from "./upload-store.ts";
import type { UserRenames } from "./user-rename.ts";

/** One user's root. */
export interface RootRecord {
  /** Username of the owner. */
  readonly owner: string;
  /** ULID given by the MetaServer. */
  readonly rootId: string;
  readonly directoryId: InodeId;
  /** Grows with every change that can affect access: shares, moves of directories, trash and restore. */
  readonly accessVersion: number;
  /** Grows with every lock that is taken. */
  readonly lockVersion: number;
  /** Locks in the root, those that have ended by themselves included. */
  readonly lockCount: number;
  readonly usage: Usage;
  /** On a shared engine: grows with each take-over by another process. */
  readonly leaseEpoch?: number;
}

/** Result of following a path, read in one snapshot. */
export interface Resolution {
  readonly root: RootRecord;
  /** Existing inodes from the root directory down to the deepest one. */
  readonly chain: readonly [Inode, ...Inode[]];
  /** Names below the last inode that do not exist; empty when the path exists. */
  readonly missing: readonly string[];
  /** Users with access to the last inode: their nearest row, on it or on a directory above it, is a grant. */
  readonly shared: readonly string[];
}

/** Result of a removal. */
export interface Removal {
  readonly freedBytes: number;
  readonly inodeCount: number;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
  readonly inodeDelta: number;
}

/** Result of a share or of its end. */
export interface Sharing {
  /** Inodes that the share covers: the shared one and everything below it; 0 when nothing changed. */
  readonly affectedInodes: number;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
  readonly inodeDelta: number;
}

/** A user and the path of a grant to that user. */
export interface SharedPath {
  readonly path: string;
  readonly username: string;
}

/** Paths in a root at which a user's access begins and ends. The longest path above a place decides. */
export interface UserPaths {
  readonly granted: readonly string[];
  readonly excluded: readonly string[];
}

/** A share or an exclusion, as the owner sees it. */
export interface ListedShare extends SharedPath {
  /** True for an exclusion from a share above. */
  readonly isExcluded: boolean;
  /** Username of the creator. */
  readonly by: string;
  readonly atMs: number;
}

/** Selects shares at a path and below it, after a given one, in the order of path and user. */
export interface ShareListPlace {
  readonly path: string;
  readonly after: SharedPath;
  /** From 1. */
  readonly limit: number;
}

/** One page of shares, with at most SHARE_PAGE_BYTES of paths, or a single share. */
export interface ShareListPage {
  readonly shares: readonly ListedShare[];
  readonly isLast: boolean;
}

/** A user's own grant or exclusion on one inode. */
export interface OwnShare {
  readonly inodeId: InodeId;
  readonly username: string;
  readonly isExcluded: boolean;
}

/** The order of a listing; ties are broken by name. */
export type ListSort = "name" | "name-desc" | "size" | "size-desc" | "mtime" | "mtime-desc";

/** Users with a grant and users with an exclusion on one inode, in order. */
export interface OwnShares {
  readonly shared: readonly string[];
  readonly excluded: readonly string[];
}

/** Selects a page of a directory and its order. */
export interface ListQuery {
  readonly limit: number;
  readonly pageToken: string;
  readonly sort: ListSort;
  /** User from whom the listing hides entries that an exclusion keeps from that user. */
  readonly hiddenFrom?: string | undefined;
}

/** A listing that is sorted in another thread: its user and its end. */
export interface SortedOrder {
  readonly user: string;
  readonly signal: AbortSignal;
  /**
   * Decides the listing at its turn. Rejected as stale when the root's access version has changed by then.
   */
  readonly query: () => ListQuery & {
    readonly owner: string;
    readonly accessVersion: number;
    readonly directoryId: InodeId;
  };
}

/** One page of a directory. */
export interface ListPage {
  readonly entries: readonly Inode[];
  /** Users of grants and of exclusions on an entry itself; absent for entries without either. */
  readonly own: ReadonlyMap<InodeId, OwnShares>;
  /** Token of the next page; undefined at the end. */
  readonly nextPageToken: string | undefined;
}

/** Damage that was not known before. */
export interface DamageFound {
  /** The file that the bytes belong to, when they lie in the database. */
  readonly inode?: InodeId;
  /** The chunk that the bytes belong to. */
  readonly chunk?: number;
  /** Description of the damage. */
  readonly problem: string;
  /** Files that cannot be read any more because of it: copies share chunks. */
  readonly files: number;
}

/** A file whose stored bytes were found wrong. */
export interface DamagedFile {
  readonly owner: string;
  /** Current path, or the path before it was trashed. */
  readonly path: string;
  readonly isTrashed: boolean;
  readonly inode: InodeId;
  readonly sizeBytes: number;
}

/** All files marked as damaged. */
export interface DamagedFiles {
  readonly count: number;
  /** The first DAMAGED_FILES_LISTED of them. */
  readonly listed: readonly DamagedFile[];
}

/** Facts for the metrics document; kept as counters, never scanned. */
export interface StorageFacts {
  readonly chunkCount: number;
  readonly inodeCount: number;
  readonly trashBytes: number;
  readonly stagingBytes: number;
}

/**
 * Shares: access of users other than the owner (spec 4.5, T24). Reads come from the same snapshot as those of
 * Storage.
 */
export interface ShareStorage {
  /**
   * Paths in a root at which grants and exclusions of a user hang, at most GRANTS_PER_ROOT. The cost depends
   * on the user's own rows alone and so does not reveal whether the root exists (D1).
   */
  pathsOf(owner: string, username: string): UserPaths;
  /**
   * Users who reach an inode by a grant on it or above it, without an exclusion between; undefined for an
   * unreachable inode.
   */
  usersOf(inodeId: InodeId): readonly string[] | undefined;
  /** Grants and exclusions at a path of a root and below it. */
  listed(owner: string, place: ShareListPlace): ShareListPage;
  /** Grants and exclusions at inodes, in their order. */
  at(inodeIds: readonly InodeId[]): OwnShare[];
  /** All grants of a root by path and user. */
  ofRoot(owner: string): readonly SharedPath[];
  /** All grants by owner, for this node's registration. */
  all(): ReadonlyMap<string, readonly SharedPath[]>;
  /** Calls back when grants of a root, or their paths, may have changed; reads then see the new state. */
  onChange(callback: (owners: readonly string[]) => void): void;
  /**
   * Grants a user access to an inode and everything below it, in the same time at any size (T24). Exclusions
   * there end. Throws SHARE_LIMIT, and BAD_ARGUMENT for the owner.
   */
  grant(change: GrantChange): Promise<Sharing>;
  /**
   * Ends access to the inode and everything below it, with an exclusion where a grant above would continue
   * it. Takes the same time at any size and works on a full disk. Throws SHARE_LIMIT without room for the
   * exclusion, and BAD_ARGUMENT for the owner.
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
  /** User who uploads, when it is not the owner. */
  readonly by?: string;
  readonly sizeBytes: number | undefined;
  /** Where another thread moves the bytes. */
  readonly elsewhere?: ContentElsewhere | undefined;
}

/**
 * Files, directories and their sizes, without quotas and permissions. All times are wall milliseconds, all
 * sizes bytes. Errors are GroveErrors: NO_SUCH_PATH, PATH_EXISTS, NOT_DIRECTORY, IS_DIRECTORY, NOT_EMPTY,
 * ETAG_MISMATCH, BAD_ARGUMENT, CORRUPT. Changes throw STORAGE_FAILED after a failed flush, DISK_RESERVE on a
 * full disk, OVERLOADED when too many wait.
 */
export interface Storage extends TrashStorage, UserRenames {
  /** The identity of the data directory: a ULID made with it. */
  readonly dataId: string;
  /** Reason for which all changes are refused, once a flush has failed. */
  readonly failure: string | undefined;
  /** Calls back once when a flush fails. */
  onFailure(callback: (reason: string) => void): void;
  /** Calls back with an owner whose used bytes may have shrunk by no call, once reads see that. */
  onFreed(callback: (owner: string) => void): void;
  facts(): StorageFacts;
  /** Calls back when a read or the scrub finds new damage; the files are marked by then. */
  onDamage(callback: (found: DamageFound) => void): void;
  /** Files marked since the start of the process. */
  readonly damageFoundTotal: number;
  /** Files marked as damaged now; the cost grows with their number only. */
  damagedFiles(): DamagedFiles;
  /** Reads everything over and over in the background, from where the last process ended. Call it once. */
  startScrub(settings: ScrubSettings): void;
  /** Progress of the scrub. */
  scrubState(): ScrubState;
  /**
   * Compares all counters with what they count, again and again, from where the last process left off. Call
   * it once.
   */
  startRecount(settings: RecountSettings): void;
  /** Progress and findings of the recount. */
  recountState(): RecountState;

  /** Reads come from one snapshot with every acknowledged change, synchronously and within microseconds. */
  root(owner: string): RootRecord | undefined;
  roots(): RootRecord[];
  /** Resolves canonical names below a root. Throws NO_SUCH_PATH only when the root does not exist. */
  resolve(owner: string, names: readonly string[]): Resolution;
  /**
   * One page of a directory, keyset-paged: entries present throughout are listed exactly once. Throws
   * BAD_ARGUMENT for a foreign token. In another order than by name the cost grows with the directory: use
   * `listSorted` above LIST_SORT_AT_ONCE entries.
   */
  list(directoryId: InodeId, page: ListQuery): ListPage;
  /**
   * The same, sorted in a separate thread, round-robin over users. Throws OVERLOADED when too many wait, and
   * StaleAccessError.
   */
  listSorted(order: SortedOrder): Promise<ListPage>;
  /** Inodes below a directory, 0 for a file and a missing inode; kept as a sum, never counted. */
  inodesBelow(id: InodeId): number;
  /**
   * Pins the current version of a file; with a range, which saves work in a huge file, what lies outside of it
   * may not be asked for. Throws NO_SUCH_PATH when it is gone.
   */
  openFile(fileId: InodeId, range?: ByteRange): FileContent;

  /**
   * Makes a root; a repeated rootId returns the existing root. Its inode numbers begin with the cluster's
   * number; without one, or when that is taken here, with the data folder's own next one.
   */
  createRoot(root: { owner: string; rootId: string; number?: number | undefined }): Promise<RootRecord>;
  createDirectory(change: ChangeContext & { parentId: InodeId; name: string }): Promise<Change>;
  /** Creates a small file (at most 65,536 bytes) in one transaction. Throws PATH_EXISTS. */
  createFile(
    change: ChangeContext & { parentId: InodeId; name: string; data: Uint8Array; mtimeMs: number },
  ): Promise<Change>;
  /** Uploads that outlive their streams and restarts. */
  readonly uploads: UploadStore;
  readonly shares: ShareStorage;
  /** Roots on their way to other nodes, and from them. */
  readonly moves: RootMoveStorage;
  readonly locks: LockStorage;
  readonly links: LinkStorage;
  readonly properties: PropertyStorage;
  /** Opens a sink for content; a known size lets chunk files be laid out for it. */
  beginUpload(upload: WantedUpload): UploadSink;
  /**
   * Rewrites a range by copy and grows the file when the range ends behind it; a hole before offset reads as
   * zeros.
   */
  writeRange(
    change: ChangeContext & {
      fileId: InodeId;
      offset: number;
      data: Uint8Array;
      ifMatch: string | undefined;
    },
  ): Promise<Change>;
  /**
   * Cuts or grows a file to a size; the growth is a hole and reads as zeros. When a user other than the owner
   * cuts, the old content goes to the owner's trash (D13). Throws ETAG_MISMATCH, and CORRUPT for a cut within
   * damaged bytes.
   */
  setSize(
    change: ChangeContext & { fileId: InodeId; sizeBytes: number; ifMatch: string | undefined },
  ): Promise<Change>;
  /**
   * Moves or renames inside one root. "rename" finds a free name, "trash" puts what is there into the trash, whatever
   * it is. A move of a directory into itself, or to where something above it is, is BAD_ARGUMENT. Throws ETAG_MISMATCH.
   */
  rename(
    change: ChangeContext &
      ExpectedVersions & {
        inodeId: InodeId;
        parentId: InodeId;
        name: string;
        /** The path that was followed to the new place; see ChangeContext.at. */
        targetAt?: string;
        onConflict: TreeConflictRule;
      },
  ): Promise<Change>;
  /**
   * Copies inside one root by sharing chunks; files keep their times of change. A directory appears as a
   * whole or not at all, while other changes go on. Throws OVERLOADED when the source changes too much
   * meanwhile or too many copies wait. Throws RATE_LIMITED when too many of the same user wait, and the
   * signal's reason when it aborts.
   */
  copy(order: CopyOrder): Promise<Change>;
  /** Removes for good. NOT_EMPTY unless recursive; BAD_ARGUMENT for the root directory. */
  remove(change: ChangeContext & { inodeId: InodeId; recursive: boolean }): Promise<Removal>;

  /** Waits for running changes, brings in the log and closes. Later calls throw STORAGE_FAILED. */
  close(): Promise<void>;
}
